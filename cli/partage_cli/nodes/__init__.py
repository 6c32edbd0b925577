"""``partage nodes``: the cluster's cards, from the nodes' inventories.

`command` reads them, from the API server or from this node's own file; `reports` interprets them; `shown` prints them.
"""
