"""Our own plugins: ordinary ones, found by their entry points like everyone's.

The native dialect and the node side of cards are here; the GPU allocator will be.
"""
