"""What `bench/advertiser.py` is made of: a node with sixteen cards, what is done to it, and a crowd without cards."""
