"""`partage audit`: whether API server, keys, inventories, runtime and broker say the same of who has which cards.

`observation` has the facts, `sources` gathers them; `of_pods`, `of_cards` and `of_node` compare them and are pure.
Findings are those of `partage doctor`, and so is how they are shown.
"""
