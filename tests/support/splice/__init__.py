"""Both ends of a splice, as models that verify everything."""
