"""Shared by `bench/memory.py` and tests of isolation: programs that use a card, races between them, and their costs."""
