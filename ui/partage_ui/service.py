"""The page of a cluster as a daemon: reads once for all viewers, and answers browsers until it is stopped."""

from __future__ import annotations

import asyncio
import gc
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import structlog

from partage_base.daemon.errors import BadConfiguration, CannotListen
from partage_base.daemon.life import Daemon
from partage_base.daemon.logs import Repeats
from partage_base.kube import Access, ApiServer, BadAccess
from partage_base.version import VERSION
from partage_ui.board import Board
from partage_ui.cluster import ClusterReader, nothing_known
from partage_ui.connections import Connections
from partage_ui.reviews import ClusterDoor, Door
from partage_ui.settings import UiSettings
from partage_ui.site import Site

_CONNECTIONS: Final = 16
_CERTIFICATE_EVERY_S: Final = 30.0
_COLLECT_AFTER: Final = 100_000
"""Allocations before the garbage collector runs, which traverses all that is known of a cluster."""
_log = structlog.get_logger()


async def start(settings: UiSettings, daemon: Daemon) -> UiService:
    """Requires credentials and the certificate; the API server need not be reachable."""
    try:
        access = await asyncio.to_thread(Access.find, settings.kubeconfig)
    except BadAccess as error:
        raise BadConfiguration(str(error)) from None
    tls = None
    if settings.tls_certificate is not None and settings.tls_key is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _load(tls, settings.tls_certificate, settings.tls_key)
        daemon.tasks.start(_keep_fresh(tls, settings.tls_certificate, settings.tls_key), name="certificate")
    agent = f"partage-ui/{VERSION}"
    server = await daemon.stack.enter_async_context(ApiServer(access, user_agent=agent, connections=_CONNECTIONS))
    board = Board(nothing_known())
    reader = ClusterReader(
        server,
        board,
        namespace=settings.namespace,
        scheduler=settings.scheduler_name,
        asks=settings.ask_brokers,
        prometheus=settings.prometheus,
    )
    site = await opened(
        board,
        ClusterDoor(server),
        settings.listen,
        daemon.stack,
        tls=tls,
        secure=tls is not None or settings.secure_cookies,
        session_s=settings.session_s,
    )
    gc.set_threshold(_COLLECT_AFTER)
    reader.start(daemon.tasks)
    metrics = daemon.metrics
    metrics.read_gauge("partage_ui_viewers", "Viewers who signed in.", lambda: len(site.viewers))
    metrics.read_gauge("partage_ui_streams", "Pages that follow what changes.", lambda: site.viewers.streams)
    metrics.read_gauge("partage_ui_unknown", "Kinds of objects that could not be read.", lambda: len(reader.lost))
    metrics.read_counter("partage_ui_logins_total", "Tokens that were pasted.", lambda: site.logins, label="outcome")
    return UiService(site)


async def opened(  # noqa: PLR0913 - what is served, to whom and where
    board: Board,
    door: Door,
    address: str,
    stack: AsyncExitStack,
    *,
    tls: ssl.SSLContext | None = None,
    secure: bool = False,
    session_s: float,
) -> Site:
    """Listens until the stack is closed; raises `CannotListen`."""
    connections = Connections(address, tls=tls)
    site = Site(board, door, secure=secure, session_s=session_s, know=connections.know)
    try:
        await connections.open(site.answer)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise CannotListen(f"cannot listen on {address}: {why}; choose another address") from error
    stack.push_async_callback(connections.close)
    stack.callback(site.stop)
    site.port = connections.port
    _log.info("serving the page", port=site.port, tls=tls is not None)
    return site


class UiService:
    def __init__(self, site: Site) -> None:
        self.site = site

    async def run(self, stopping: asyncio.Event) -> None:
        """Readers and connections are tasks of their own."""
        await stopping.wait()


def _load(tls: ssl.SSLContext, certificate: Path, key: Path) -> None:
    try:
        tls.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise BadConfiguration(f"tls_certificate {certificate} and tls_key {key} can't be used: {error}") from None


async def _keep_fresh(tls: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Reloads the files for new connections; unusable ones leave the last certificate in force."""
    repeats = Repeats(every_s=3600)
    while True:
        await asyncio.sleep(_CERTIFICATE_EVERY_S)
        try:
            _load(tls, certificate, key)
        except BadConfiguration as error:
            repeats.failed("the certificate can't be read again; the last one serves", error)
