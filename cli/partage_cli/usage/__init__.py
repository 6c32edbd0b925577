"""``partage usage``: what pods held of cards over a period, in milli-hours and GiB-hours.

`held` counts the allocations of existing pods, `sampled` sums the brokers' metrics in Prometheus; both report the
period that they cover. `report` defines the results and is pure.
"""
