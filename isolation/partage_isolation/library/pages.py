"""The object by which the broker writes the lines of pages: built, installed beside the library, and loaded.

A line is read by programs while it is written, and they sleep on it; Python has no words for either. So there is one
function in C (isolation/page). It is no part of what containers get.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

from partage_base.compilation import Compilation, cache_folder
from partage_base.files import write_whole
from partage_isolation.library.errors import NotBuilt, NotInstalled
from partage_isolation.library.objects import CARRIED, CHECKOUT, READY_MADE

PAGE: Final = "libpartage-page.so"
_FUNCTION: Final = "partage_line_write"
_IN_CHECKOUT: Final = CHECKOUT / "isolation/page"
_IN_PACKAGE: Final = Path(__file__).parent / "page"

WriteLine = Callable[[int, int, bool], None]
"""Where the line is, its word, and whether a thread may sleep there."""


def page_sources() -> Path:
    return _IN_CHECKOUT if (_IN_CHECKOUT / "Makefile").is_file() else _IN_PACKAGE


def built_page() -> Path:
    """The object for this machine: with the library's ready-made ones, come along with the package, or compiled now."""
    checkout = CHECKOUT if page_sources() == _IN_CHECKOUT else None
    carried = [Path(found).resolve() / PAGE] if (found := os.environ.get(READY_MADE)) else []
    if checkout is None:
        carried.append(CARRIED / os.uname().machine / PAGE)
    whole = Compilation("the broker's writer of pages", page_sources(), cache_folder("page", checkout), NotBuilt)
    return next((path for path in carried if path.is_file()), None) or whole.built() / PAGE


def install_page(folder: Path) -> Path:
    """Puts it into the folder of libraries; a broker that runs keeps the one that it has. Raises `LibraryError`."""
    source, target = built_page(), folder / PAGE
    try:
        content = source.read_bytes()
        if not (target.is_file() and target.read_bytes() == content):
            write_whole(target, content, mode=0o755, synced=True)
    except OSError as error:
        raise NotInstalled(f"{PAGE} cannot be written to {folder}: {error}") from error
    return target


def line_writer(folder: Path) -> WriteLine:
    """What writes a line; raises `NotInstalled` where it is not there, or not for this broker."""
    path = folder / PAGE
    try:
        function = getattr(ctypes.CDLL(str(path)), _FUNCTION)
    except (OSError, AttributeError) as error:
        raise NotInstalled(
            f"the broker cannot write leases without {path} ({error}); "
            "install it with `partage-broker --install-library`"
        ) from error
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int), None
    return cast("WriteLine", function)
