"""``partage suspend`` and ``partage resume``: move a pod's memory off its card, and back."""
