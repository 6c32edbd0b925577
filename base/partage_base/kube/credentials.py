"""Where to call and as whom: what every reader of configuration hands over. Data only."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Credentials:
    """Where to call and as whom, as of the last look."""

    url: str
    """Without a slash at its end; it may have a path."""
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    """What the certificate must be for, where that is not the host in `url`."""
    proxy: str | None = None
    authorization: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Reading:
    """What was read, and how to tell whether it is still right."""

    credentials: Credentials
    files: tuple[Path, ...]
    """When one of these changes, all must be read again."""
    renewed: Callable[[], Credentials]
    """Those of now, equal where nothing is new; a plugin is asked again when what it gave expires soon. Blocks."""
