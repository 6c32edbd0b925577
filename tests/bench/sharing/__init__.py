"""What `bench-share` measures: containers that share a simulated card, under each policy."""
