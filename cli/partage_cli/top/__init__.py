"""``partage top``: this node's cards and its containers with limits, as its broker reports them.

`shown` and `times`, which are pure, turn the broker's report into lines; `columns`, pure too, fits them to a terminal;
`live` redraws them.
"""
