"""Names of images, as docker reads them. Pure.

A name without a host is Docker Hub's, one without a folder there is of its `library`, and one without a tag or a digest
is of the tag `latest`.
"""

from __future__ import annotations

import re
from typing import Final

from partage_plugins.errors import Refused

_HUB: Final = "docker.io"
_OLD_HUB: Final = "index.docker.io"
_MOST: Final = 255
_HOST: Final = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?"
_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAME: Final = re.compile(
    rf"(?:(?P<host>{_HOST})/)?(?P<path>{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)
_ID: Final = re.compile(r"(?:sha256:)?[0-9a-f]{64}", re.ASCII)


def whole_name(name: str) -> str:
    """The name as the runtime has it; an id stays as it is. Raises `Refused`."""
    if _ID.fullmatch(name):
        return name
    host, path, tag, digest = _parts(name)
    if host == _OLD_HUB:
        host = _HUB
    if host == _HUB and "/" not in path:
        path = f"library/{path}"
    if digest:
        return f"{host}/{path}@{digest}"
    return f"{host}/{path}:{tag or 'latest'}"


def _parts(name: str) -> tuple[str, str, str | None, str | None]:
    first, slash, _ = name.partition("/")
    has_host = slash and (any(sign in first for sign in ".:") or first == "localhost" or first.lower() != first)
    found = _NAME.fullmatch(name if has_host else f"{_HUB}/{name}") if len(name) <= _MOST else None
    if found is None:
        raise Refused(
            f"image {name[:_MOST]!r} is no name of an image: write it as busybox, host/path:tag or path@sha256:…"
        )
    return found["host"], found["path"], found["tag"], found["digest"]
