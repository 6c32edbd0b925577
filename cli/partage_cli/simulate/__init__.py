"""``partage simulate``: compares policies on the same pods. The command line, the table and the plot."""
