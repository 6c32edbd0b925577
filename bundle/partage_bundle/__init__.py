"""Builds what is installed: trees for nodes and for the scheduler, their images, and one archive of everything.

A build tool that is not part of the wheel; it imports nothing of partage. `recipe` defines the contents of a tree and
`locks` their versions; `debian`, `wheels` and `native` provide the parts and `tree` assembles them. `image` makes
images of trees, `registry` pushes them, and `archive` is for clusters without a network.
"""

from partage_bundle.tree import built

__all__ = ["built"]
