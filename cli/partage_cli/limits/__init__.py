"""``partage limits``: what a pod's containers may hold on this node, and lowering it while they run.

`choosing`, which is pure, says which limits are meant; the broker decides about them.
"""
