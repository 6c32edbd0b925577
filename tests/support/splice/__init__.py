"""Both ends of a splice, as models that take nothing on trust."""
