"""Images for pods, built from the machine's own files, so that no test downloads one.

`busybox` is static and has a link for each applet; `glibc` and `musl` have a loader and dynamic programs, because
nothing can be preloaded into a static one; `preloadable` adds what our library needs; `pause` holds a pod's namespaces.
`Image.with_files` adds a test's own programs.
"""

from __future__ import annotations

from rig.images.bases import SANDBOX, busybox, compiled, glibc, musl, pause, preloadable
from rig.images.image import Image, Settings
from rig.images.layers import Entry, File, Folder, HardLink, SymbolicLink

__all__ = [
    "SANDBOX",
    "Entry",
    "File",
    "Folder",
    "HardLink",
    "Image",
    "Settings",
    "SymbolicLink",
    "busybox",
    "compiled",
    "glibc",
    "musl",
    "pause",
    "preloadable",
]
