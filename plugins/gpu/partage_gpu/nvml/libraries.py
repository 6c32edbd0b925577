"""Opens the driver: loads libnvidia-ml from the driver's root, and initialises it."""

from __future__ import annotations

import ctypes
from typing import Final

from partage_gpu.driver_root import LIBRARY, library_below
from partage_gpu.nvml.facts import Trouble, TroubleKind

_KINDS: Final[dict[int, TroubleKind]] = {9: "no-driver", 12: "no-library", 18: "mismatch"}
_ADVICE: Final[dict[TroubleKind, str]] = {
    "no-driver": "; the nvidia module is not loaded, or not built for this kernel",
    "mismatch": "; the kernel driver is another one than the library: reload it, or restart the node",
}


class NoDriver(Exception):
    """There is no driver to query, or it was replaced."""

    def __init__(self, kind: TroubleKind, sentence: str) -> None:
        super().__init__(sentence)
        self.trouble = Trouble(kind=kind, sentence=sentence)


def open_driver(driver_root: str) -> ctypes.CDLL:
    """The library, initialised for all of this process; raises `NoDriver`."""
    path = library_below(driver_root)
    if path is None:
        raise NoDriver("no-library", f"there is no {LIBRARY} below {driver_root}; is NVIDIA's driver installed there?")
    try:
        library = ctypes.CDLL(path)
        library.nvmlErrorString.restype = ctypes.c_char_p
        initialise = library.nvmlInit_v2
    except (OSError, AttributeError) as error:
        raise NoDriver("no-library", f"{path} cannot be loaded: {error}") from error
    number = initialise()
    if number != 0:
        words = words_of(library, number)
        raise NoDriver(kind := kind_of(number), f"NVML does not start: {words}{_ADVICE.get(kind, '')}")
    return library


def words_of(library: ctypes.CDLL, number: int) -> str:
    """NVML's text for an error, with its number."""
    words: bytes | None = library.nvmlErrorString(number)
    return f"{(words or b'no words for it').decode(errors='replace')} ({number})"


def kind_of(number: int) -> TroubleKind:
    """The kind of trouble for an error that does not concern a single card."""
    return _KINDS.get(number, "failed")
