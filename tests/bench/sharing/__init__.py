"""The measurements of `bench-share`: containers that share a simulated card, under each policy."""
