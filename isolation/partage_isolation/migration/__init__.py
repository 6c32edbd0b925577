"""Movable memory, which leaves a card during others' time slices: who has room there, and what moves. Pure."""
