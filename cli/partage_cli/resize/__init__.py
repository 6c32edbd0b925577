"""``partage resize``: other amounts for a pod that runs, by the scheduler's word."""
