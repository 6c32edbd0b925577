"""``partage simulate``: what would each policy make of these pods? The words, the table and the plot."""
