"""``partage resize``: changes the amounts of a running pod, by a decision of the scheduler."""
