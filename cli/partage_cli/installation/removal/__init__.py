"""Takes partage off a node and leaves no trace.

`drain` has the pods leave that have cards here, and `uninstall` is all of it in its order.
"""
