"""Makes what is installed: trees for nodes and for the scheduler, their images, and one archive of all.

A build tool, of which nothing is in the wheel; it imports nothing of partage. `recipe` says what a tree is made of and
`locks` in which versions; `debian`, `wheels` and `native` get the parts and `tree` puts them together. `image` makes
images of trees, `registry` pushes them, and `archive` is for clusters without a network.
"""

from partage_bundle.tree import built

__all__ = ["built"]
