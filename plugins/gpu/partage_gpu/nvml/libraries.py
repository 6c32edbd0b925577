"""Finds libnvidia-ml below a driver's root: the folders where distributions and driver containers put it.

Links below another root mean that root: Debian's libnvidia-ml.so.1 is a link to /etc/alternatives, which leads back.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

from partage_gpu.nvml.facts import Trouble, TroubleKind

LIBRARY: Final = "libnvidia-ml.so.1"
_FOLDERS: Final = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "lib64", "lib")
_MOST_LINKS: Final = 40


def library_below(driver_root: str) -> str | None:
    """Its path, without links; its bare name for `/`, where the loader looks in its own way; None: there is none."""
    return file_below(driver_root, LIBRARY) if driver_root.strip("/.") else LIBRARY


def file_below(driver_root: str, library: str) -> str | None:
    """The path of a library of the driver, without links; None: there is none."""
    paths = (_followed(driver_root.rstrip("/"), f"{folder}/{library}") for folder in _FOLDERS)
    return next((path for path in paths if path is not None and os.path.isfile(path)), None)  # noqa: PTH113  as above


def _followed(root: str, path: str) -> str | None:
    """Where `path` below `root` leads, never out of it; None where links lead in circles."""
    done: list[str] = []
    waiting = path.split("/")[::-1]
    for _ in range(_MOST_LINKS):
        target = _until_a_link(root, done, waiting)
        if target is None:
            return "/".join((root, *done))
        if target.startswith("/"):
            done.clear()
        waiting += target.split("/")[::-1]
    return None


def _until_a_link(root: str, done: list[str], waiting: list[str]) -> str | None:
    """Goes on until a link, and says where that leads; None where there is none any more."""
    while waiting:
        name = waiting.pop()
        if name == "..":
            del done[-1:]
        elif name not in ("", "."):
            try:
                return os.readlink("/".join((root, *done, name)))  # noqa: PTH115  pathlib is memory
            except OSError:  # no link, or nothing at all, which is seen at the end
                done.append(name)
    return None


_KINDS: Final[dict[int, TroubleKind]] = {9: "no-driver", 12: "no-library", 18: "mismatch"}
_ADVICE: Final[dict[TroubleKind, str]] = {
    "no-driver": "; the nvidia module is not loaded, or not built for this kernel",
    "mismatch": "; the kernel driver is another one than the library: reload it, or restart the node",
}


class NoDriver(Exception):
    """There is no driver to ask, or it is not the same one any more."""

    def __init__(self, kind: TroubleKind, sentence: str) -> None:
        super().__init__(sentence)
        self.trouble = Trouble(kind=kind, sentence=sentence)


def open_driver(driver_root: str) -> None:
    """Returns with NVML ready to be asked by anyone in this process, or raises `NoDriver`."""
    path = library_below(driver_root)
    if path is None:
        raise NoDriver("no-library", f"there is no {LIBRARY} below {driver_root}; is NVIDIA's driver installed there?")
    try:
        library = ctypes.CDLL(path)
        initialise, name_of = library.nvmlInit_v2, library.nvmlErrorString
    except (OSError, AttributeError) as error:
        raise NoDriver("no-library", f"{path} cannot be loaded: {error}") from error
    name_of.restype = ctypes.c_char_p
    number = initialise()
    if number != 0:
        words = (name_of(number) or b"no words for it").decode(errors="replace")
        raise NoDriver(kind := kind_of(number), f"NVML does not start: {words} ({number}){_ADVICE.get(kind, '')}")


def kind_of(number: int) -> TroubleKind:
    """What an error that is not of one card means."""
    return _KINDS.get(number, "failed")
