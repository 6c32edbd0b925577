"""Images for one machine without a registry: made of this machine's own files, and packed as engines load them.

Containers of the workloads' image use a card as any program does, by its driver. Nothing of ours is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from partage_simgpu.build import WORKLOADS, built
from rig import images
from rig.images.image import layout


def workloads() -> images.Image:
    """The small programs that use a card, beside shell and tools."""
    return images.preloadable().with_files({f"/usr/bin/{name}": built() / name for name in WORKLOADS})


def write_archive(path: Path, stock: Mapping[str, images.Image]) -> Path:
    """An archive of these images, by the short names that commands take."""
    path.write_bytes(layout({f"docker.io/library/{name}:latest": image for name, image in stock.items()}))
    return path
