"""``partage top``: this node's cards and containers with limits, as its broker tells.

`shown` and `times`, which are pure, make lines of what the broker tells; `fitting`, pure too, makes them fit a
terminal; `live` draws them again and again.
"""
