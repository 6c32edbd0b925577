"""An `ApiServer` of ours and a fake one, in one loop."""

from __future__ import annotations

import asyncio
import functools
import inspect
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from partage_base.kube import Access, ApiServer
from partage_base.kube.credentials import Credentials, Reading
from rig.identity.certificates import Authority, Pair, Use
from rig.identity.people import Person
from support.fake_api import FakeApi

P = ParamSpec("P")
Story = Callable[[FakeApi, ApiServer], Awaitable[None]]


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


@asynccontextmanager
async def api_and_client(
    *, deadline_s: float = 10.0, connections: int = 4, most_answer_bytes: int = 1 << 20
) -> AsyncGenerator[tuple[FakeApi, ApiServer]]:
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
        yield api, server


def told(story: Story, **settings: Any) -> None:
    """Runs the story with a fake API server and a client of it, in a loop of its own."""

    async def whole() -> None:
        async with api_and_client(**settings) as peers:
            await story(*peers)

    asyncio.run(whole())


def with_client(
    **settings: Any,
) -> Callable[[Callable[Concatenate[FakeApi, ApiServer, P], Awaitable[None]]], Callable[P, Awaitable[None]]]:
    """Gives an async test a fake API server and a client of it, before its other parameters."""

    def decorated(test: Callable[Concatenate[FakeApi, ApiServer, P], Awaitable[None]]) -> Callable[P, Awaitable[None]]:
        @functools.wraps(test)
        async def whole(*args: P.args, **kwargs: P.kwargs) -> None:
            async with api_and_client(**settings) as peers:
                await test(*peers, *args, **kwargs)

        signature = inspect.signature(test)
        others = list(signature.parameters.values())[2:]
        setattr(whole, "__signature__", signature.replace(parameters=others))  # noqa: B010  pytest's fixtures are these
        return whole

    return decorated


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
