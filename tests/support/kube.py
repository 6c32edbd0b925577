"""An `ApiServer` of ours and a fake one, in one loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

import uvloop

from partage_base.kube import Access, ApiServer
from partage_base.kube.credentials import Credentials, Reading
from rig.identity.certificates import Authority, Pair, Use
from rig.identity.people import Person
from support.fake_api import FakeApi

Story = Callable[[FakeApi, ApiServer], Awaitable[None]]
LOOPS: Final[dict[str, Callable[[Coroutine[Any, Any, None]], None]]] = {"asyncio": asyncio.run, "uvloop": uvloop.run}
uvloop.new_event_loop().close()  # libuv's pipe for signals is made once a process and stays: no test's leak


def access_to(
    url: str,
    *,
    authorization: str | None = None,
    tls: ssl.SSLContext | None = None,
    server_name: str | None = None,
    proxy: str | None = None,
) -> Access:
    credentials = Credentials(url=url, authorization=authorization, tls=tls, server_name=server_name, proxy=proxy)
    return Access("a test", lambda: Reading(credentials, (), lambda: authorization))


def told(
    story: Story,
    *,
    loop: str = "asyncio",
    deadline_s: float = 10.0,
    connections: int = 4,
    most_answer_bytes: int = 1 << 20,
) -> None:
    """Runs the story with a fake API server and a client of it."""

    async def whole() -> None:
        async with (
            FakeApi() as api,
            ApiServer(
                access_to(api.url),
                user_agent="partage-test/1",
                deadline_s=deadline_s,
                connections=connections,
                most_answer_bytes=most_answer_bytes,
            ) as server,
        ):
            await story(api, server)

    LOOPS[loop](whole())


async def until(condition: Callable[[], object], *, within_s: float = 60.0) -> None:
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110  (conditions of all kinds, and no one who would set an event)
            await asyncio.sleep(0.005)


def serving_context(authority: Authority, folder: Path, *, name: str = "localhost") -> ssl.SSLContext:
    """For a fake server with a certificate for this DNS name, and for the address 127.0.0.1."""
    pair = authority.issue(Person(name), Use.SERVER, ips=[IPv4Address("127.0.0.1")], names=[name])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*stored(folder, "server", pair))
    return context


def stored(folder: Path, name: str, pair: Pair) -> tuple[Path, Path]:
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    return certificate, key
