"""``partage nodes``: the cluster's cards, as the nodes' inventories tell.

`command` gathers, from the API server or from this node's own file; `reports` decides what it means; `shown` writes it.
"""
