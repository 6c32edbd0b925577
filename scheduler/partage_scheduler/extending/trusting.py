"""Who is answered over TLS: callers with a certificate of one authority, and nobody else.

Whoever is answered may have pods bound, so a network that lets them through is not enough. Our certificate is renewed
by others while we run, and a new one holds for new connections; the callers' authority is read once, since one that
was believed can't be forgotten while connections stand.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from partage_base.daemon.errors import BadConfiguration

_LOOK_EVERY_S: Final = 60.0
_log = structlog.get_logger()


@dataclass(frozen=True)
class Papers:
    """Three files, PEM."""

    certificate: Path
    """Ours, with those between it and its authority."""
    key: Path
    callers: Path
    """The authority of callers' certificates."""

    @property
    def stamps(self) -> tuple[tuple[int, int], ...]:
        """Other ones where our certificate is another than before."""
        found = [path.stat() for path in (self.certificate, self.key)]
        return tuple((each.st_mtime_ns, each.st_ino) for each in found)


def context_of(papers: Papers) -> ssl.SSLContext:
    """For a port; raises `BadConfiguration`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["http/1.1"])
    _load(context, papers)
    try:
        context.load_verify_locations(papers.callers)
    except OSError as error:
        raise BadConfiguration(f"the authority of the extender's callers, {papers.callers}: {error}") from None
    return context


async def keep_fresh(context: ssl.SSLContext, papers: Papers, *, every_s: float = _LOOK_EVERY_S) -> None:
    """Reads the files again when they are others."""
    known = papers.stamps
    while True:
        await asyncio.sleep(every_s)
        try:
            now = papers.stamps
            if now != known:
                _load(context, papers)
                known = now
                _log.info("the extender's certificate was read anew", certificate=str(papers.certificate))
        except (OSError, BadConfiguration) as error:
            _log.warning("the extender's certificate can't be read anew; the last one holds", why=str(error))


def _load(context: ssl.SSLContext, papers: Papers) -> None:
    try:
        context.load_cert_chain(papers.certificate, papers.key)
    except OSError as error:  # ssl's own errors are among them
        names = f"{papers.certificate} with the key {papers.key}"
        raise BadConfiguration(f"the extender's certificate, {names}: {error}") from None
