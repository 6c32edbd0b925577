"""The API server's address and our credentials, as every reader of configuration returns them. Data only."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Credentials:
    """Address and credentials, as last read."""

    url: str
    """Without a trailing slash; it may have a path."""
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    """The name that the certificate must have, if it is not the host in `url`."""
    proxy: str | None = None
    authorization: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Reading:
    """Credentials, and how to tell whether they are still current."""

    credentials: Credentials
    files: tuple[Path, ...]
    """When one of these changes, all must be read again."""
    renewed: Callable[[], Credentials]
    """Current credentials, equal if nothing is new; runs a plugin again if its last ones expire soon. Blocks."""
