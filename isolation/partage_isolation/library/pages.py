"""The object that writes the lines of shared pages for the broker: built, installed beside the library, and loaded.

Programs read a line while it is written, and sleep on it; Python has neither atomic stores nor futexes. So there is one
function in C (isolation/page). It is not installed in containers.
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
"""Address of the line, its word, and whether a thread may sleep on it."""


def page_sources() -> Path:
    return _IN_CHECKOUT if (_IN_CHECKOUT / "Makefile").is_file() else _IN_PACKAGE


def built_page() -> Path:
    """The object for this machine: beside the prebuilt library, in the package, or compiled now."""
    checkout = CHECKOUT if page_sources() == _IN_CHECKOUT else None
    carried = [Path(found).resolve() / PAGE] if (found := os.environ.get(READY_MADE)) else []
    if checkout is None:
        carried.append(CARRIED / os.uname().machine / PAGE)
    whole = Compilation("the broker's writer of pages", page_sources(), cache_folder("page", checkout), NotBuilt)
    return next((path for path in carried if path.is_file()), None) or whole.built() / PAGE


def install_page(folder: Path) -> Path:
    """Install it in the libraries' folder; a running broker keeps the one that it has. Raises `LibraryError`."""
    source, target = built_page(), folder / PAGE
    try:
        content = source.read_bytes()
        if not (target.is_file() and target.read_bytes() == content):
            write_whole(target, content, mode=0o755, synced=True)
    except OSError as error:
        raise NotInstalled(f"{PAGE} cannot be written to {folder}: {error}") from error
    return target


def line_writer(folder: Path) -> WriteLine:
    """Load the function that writes a line; raises `NotInstalled` where it is absent, or does not fit this broker."""
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
