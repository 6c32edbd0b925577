"""Makes a release: one folder with all that users install, and what they verify it by.

It defines no tree: those are made by `partage_bundle.tree` and `image`. `distributions` are for pip, `chart` for helm,
`krew` for kubectl; the pure `statements` list the contents of the folder and what it was made from, and `folder`
assembles it.
"""

from partage_bundle.release.folder import Asked, write

__all__ = ["Asked", "write"]
