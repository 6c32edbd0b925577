"""How others speak with the broker: packets of containers' processes, and questions of root."""
