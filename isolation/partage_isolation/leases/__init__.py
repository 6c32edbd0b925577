"""Leases: which container may launch work on a card, and for how long. Pure: time comes in, acts go out."""
