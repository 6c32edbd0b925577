"""`partage audit`: checks whether API server, keys, inventories, runtime and broker agree on who holds which cards.

`observation` holds the facts, `sources` gathers them; `of_pods`, `of_cards` and `of_node` compare them and are pure.
Findings have the types and the output of `partage doctor`.
"""
