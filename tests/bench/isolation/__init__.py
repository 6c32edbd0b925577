"""What `bench/memory.py` and tests of isolation share: programs that use a card, races between them, what they cost."""
