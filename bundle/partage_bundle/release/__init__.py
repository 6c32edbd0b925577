"""Makes a release: one folder with all that people install, and what they check it by.

It decides no tree: `partage_bundle.tree` and `image` have made those. `distributions` are for pip, `chart` is for helm,
`krew` for kubectl; the pure `statements` say what is in the folder and what it was made from, and `folder` puts it
together.
"""

from partage_bundle.release.folder import Asked, write

__all__ = ["Asked", "write"]
