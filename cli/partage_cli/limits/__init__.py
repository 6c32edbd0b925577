"""``partage limits``: shows a pod's limits on this node, and lowers them while the pod runs.

`choice`, which is pure, selects the limits; the broker decides about them.
"""
