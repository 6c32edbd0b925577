"""Images for one machine without a registry, built from this machine's own files and packed for engines to load.

Containers of the workloads' image use a card like any program, by its driver. The image contains nothing of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from partage_simgpu.build import WORKLOADS, built
from rig import images
from rig.images.bases import compiled
from rig.images.image import layout


def workloads() -> images.Image:
    """The small programs that use a card, with a shell and tools."""
    return images.preloadable().with_files({f"/usr/bin/{name}": built() / name for name in WORKLOADS})


def with_driver_program(path: str, source: Path) -> images.Image:
    """An image with a program of one C file, which loads the driver by itself."""
    return images.preloadable().with_files({path: compiled(source, flags=("-std=gnu11", "-ldl"))})


def write_archive(path: Path, stock: Mapping[str, images.Image]) -> Path:
    """Write an archive of these images, with the short names that commands use."""
    path.write_bytes(layout({f"docker.io/library/{name}:latest": image for name, image in stock.items()}))
    return path
