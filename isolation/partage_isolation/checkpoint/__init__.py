"""The driver's own checkpoints: a process is taken from its cards, with all its bytes, and brought back."""
