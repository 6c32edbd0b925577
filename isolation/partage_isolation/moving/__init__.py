"""Memory that leaves a card when it is the turn of others: who has room there, and whose memory moves. Pure."""
