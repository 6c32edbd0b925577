"""``partage usage``: what pods held of cards over some time, in milli-hours and GiB-hours.

`held` counts by the allocations of pods that are there, `sampled` by what a Prometheus has of the brokers' figures;
either says since when it knows. `report` has what they answer and is pure.
"""
