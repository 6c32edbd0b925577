"""Helpers for tests of our API client, beyond an API server."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from partage_base.kube import Access
from partage_base.kube.credentials import Credentials, Reading
from rig.client.wait import patient
from rig.identity.certificates import Authority, Pair, Use
from rig.identity.people import Person


def access_to(
    url: str,
    *,
    authorization: str | None = None,
    tls: ssl.SSLContext | None = None,
    server_name: str | None = None,
    proxy: str | None = None,
) -> Access:
    credentials = Credentials(url=url, authorization=authorization, tls=tls, server_name=server_name, proxy=proxy)
    return Access("a test", lambda: Reading(credentials, (), lambda: credentials))


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncGenerator[asyncio.Task[None]]:
    """Run a coroutine in the background; it is cancelled at the end."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


class Waits:
    """A virtual sleep: records the durations, and yields to other tasks."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


async def until(condition: Callable[[], object]) -> None:
    async with patient(condition, seen=condition):
        while not condition():  # noqa: ASYNC110  (conditions of all kinds, and no one who would set an event)
            await asyncio.sleep(0.005)


def serving_context(authority: Authority, folder: Path, *, name: str = "localhost") -> ssl.SSLContext:
    """A server's TLS context with a certificate for this DNS name and for the address 127.0.0.1."""
    pair = authority.issue(Person(name), Use.SERVER, ips=[IPv4Address("127.0.0.1")], names=[name])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*stored(folder, "server", pair))
    return context


def stored(folder: Path, name: str, pair: Pair) -> tuple[Path, Path]:
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    return certificate, key
