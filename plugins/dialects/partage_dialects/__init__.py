"""Request dialects, one module each, loaded by entry points."""
