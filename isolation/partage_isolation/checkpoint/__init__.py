"""The driver's own checkpoints: a process's memory is moved off its cards completely, and restored."""
