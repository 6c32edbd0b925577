"""Our own plugins: ordinary ones, found by their entry points like everyone's.

The native dialect, the GPU allocator and the node side of cards are here.
"""
