"""Where a path leads, by the links that an image has on the way: `/run` may be one to `/var/run`. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_MOST_LINKS: Final = 40
"""As in the kernel."""


def led_to(path: str, link: Callable[[str], str | None]) -> str:
    """The path without links; as it is where there are too many. `link` gives what a path's last name leads to."""
    done, ahead, links = list[str](), path.split("/")[::-1], 0
    while ahead:
        name = ahead.pop()
        if name == "..":
            del done[-1:]
        elif name not in ("", "."):
            target = link(_joined([*done, name]))
            if target is None:
                done.append(name)
                continue
            links += 1
            if links > _MOST_LINKS:
                return path
            if target.startswith("/"):
                done.clear()
            ahead += target.split("/")[::-1]
    return _joined(done)


def _joined(names: list[str]) -> str:
    return f"/{'/'.join(names)}"
