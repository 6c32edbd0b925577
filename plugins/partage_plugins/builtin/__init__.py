"""Our own plugins: ordinary ones, found by their entry points like everyone's.

The native dialect is here; the GPU allocator and the GPU node side will be.
"""
