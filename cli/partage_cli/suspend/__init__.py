"""``partage suspend`` and ``partage resume``: a pod's memory leaves its card, and comes back."""
