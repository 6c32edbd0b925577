"""The port: many requests on one connection, callers that misbehave, and unknown callers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from partage_base.acceptor import MOST_OF_ONE
from partage_base.daemon.errors import BadConfiguration, CannotListen
from partage_scheduler.extender import server
from partage_scheduler.extender.callers import CallerTrust
from partage_scheduler.extender.server import Port
from partage_scheduler.extender.wire import Ask, Unfit
from partage_scheduler.settings import CertificateFiles
from rig.identity.certificates import Authority, Use
from rig.identity.people import Person
from support.kube import stored, until
from support.loops import LOOPS
from unit.scheduler.extender.test_hearing import request

Conversation = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LOOPBACK = IPv4Address("127.0.0.1")


class Verbs:
    """Echoes requests; `/late` waits for its release, `/wrong` fails."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.released = asyncio.Event()

    def __call__(self, ask: Ask) -> bytes | Awaitable[bytes]:
        self.asked.append(ask.path)
        match ask.path:
            case "/late":
                return self._late(ask)
            case "/wrong":
                raise ValueError("a defect")
            case "/none":
                raise Unfit(404, "there is nothing")
            case _:
                return ask.body

    async def _late(self, ask: Ask) -> bytes:
        await self.released.wait()
        if ask.body == b"wrong":
            raise ValueError("a defect")
        return ask.body


@asynccontextmanager
async def a_port(verbs: Verbs, trust: CallerTrust | None = None) -> AsyncGenerator[Port]:
    port = Port("127.0.0.1:0", verbs, trust=trust)
    await port.open()
    try:
        yield port
    finally:
        await port.abort()


@asynccontextmanager
async def connected(port: Port, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Conversation]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port.port, ssl=tls)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


async def heard(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[16:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length: "))
    return int(head[9:12]), await reader.readexactly(length)


async def is_closed(conversation: Conversation) -> bool:
    with suppress(ConnectionResetError):
        return await conversation[0].read() == b""
    return True


async def asked(conversation: Conversation, path: bytes, body: bytes = b"{}") -> tuple[int, bytes]:
    reader, writer = conversation
    writer.write(request(body, path))
    return await heard(reader)


@pytest.fixture
def verbs() -> Verbs:
    return Verbs()


@pytest.fixture
async def port(verbs: Verbs) -> AsyncIterator[Port]:
    async with a_port(verbs) as port:
        yield port


@pytest.fixture
async def conversation(port: Port) -> AsyncIterator[Conversation]:
    async with connected(port) as conversation:
        yield conversation


async def test_a_connection_has_many_questions_answered_in_their_order(
    port: Port, verbs: Verbs, conversation: Conversation
) -> None:
    reader, writer = conversation
    writer.write(request(b"1", b"/a") + request(b"2", b"/late") + request(b"3", b"/b"))
    assert await heard(reader) == (200, b"1")
    await until(lambda: verbs.asked == ["/a", "/late"])
    verbs.released.set()
    assert await heard(reader) == (200, b"2")
    assert await heard(reader) == (200, b"3")


async def test_what_goes_wrong_costs_one_answer(port: Port, verbs: Verbs, conversation: Conversation) -> None:
    assert (await asked(conversation, b"/wrong"))[0] == 500
    assert await conversation[0].read() == b""
    verbs.released.set()
    async with connected(port) as another:
        assert (await asked(another, b"/late", b"wrong"))[0] == 500
    async with connected(port) as another:
        assert await asked(another, b"/none") == (404, b"there is nothing\n")
    async with connected(port) as another:
        assert await asked(another, b"/a", b"fine") == (200, b"fine")


async def test_who_leaves_before_the_answer_hurts_nobody(port: Port, verbs: Verbs, conversation: Conversation) -> None:
    conversation[1].write(request(b"1", b"/late"))
    await until(lambda: verbs.asked == ["/late"])
    conversation[1].transport.abort()
    await asyncio.sleep(0.01)
    verbs.released.set()
    async with connected(port) as another:
        assert await asked(another, b"/a") == (200, b"{}")


async def test_a_request_that_does_not_end_is_cut_and_a_connection_that_rests_is_not(
    port: Port, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "DEADLINE_S", 0.05)
    assert await asked(conversation, b"/a") == (200, b"{}")
    async with connected(port) as slow:
        slow[1].write(request()[:-1])
        assert await is_closed(slow)
    assert await asked(conversation, b"/a") == (200, b"{}")


async def test_of_too_many_connections_the_one_that_rested_longest_goes(
    port: Port, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 2)
    await asked(conversation, b"/a")
    async with connected(port) as second:
        await asked(second, b"/a")
        await asked(conversation, b"/a")
        async with connected(port) as third:
            assert await asked(third, b"/a") == (200, b"{}")
            assert await asked(conversation, b"/a") == (200, b"{}")
            assert await is_closed(second)


async def test_of_callers_that_say_too_much_together_the_one_that_said_most_goes(
    port: Port, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_HEARD_BYTES", 1 << 20)
    head = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n"
    async with connected(port) as little, connected(port) as much:
        for (_, writer), size in ((little, 300_000), (much, 900_000)):
            writer.write(head + b"x" * size)
        assert await is_closed(much)
        assert await asked(conversation, b"/echo", b"x" * 500_000) == (200, b"x" * 500_000)
        little[1].write(b"x" * 1_000_000)
        assert await is_closed(little)


async def test_at_the_end_what_is_being_answered_is_answered(
    port: Port, verbs: Verbs, conversation: Conversation
) -> None:
    reader, writer = conversation
    writer.write(request(b"1", b"/late") + request(b"2", b"/a"))
    await until(lambda: verbs.asked)
    await port.close()
    verbs.released.set()
    assert await heard(reader) == (200, b"1")
    assert await reader.read() == b""
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port.port)


async def test_an_address_that_others_have_ends_the_start(port: Port, verbs: Verbs, conversation: Conversation) -> None:
    with pytest.raises(CannotListen, match="extender_address"):
        await Port(f"127.0.0.1:{port.port}", verbs).open()


NAME = "system:kube-scheduler"
STRANGERS = ["system:node:evil", "system:kube-scheduler2", "kubernetes-admin"]


class Certificates:
    """Certificates of the server, of its callers, and of strangers."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.authority = folder, Authority("ours")
        self.certificate_files = CertificateFiles(folder / "server.crt", folder / "server.key", folder / "ca.crt")
        self.renew()

    def renew(self, name: str = "extender", *, authority: Authority | None = None) -> None:
        self.authority = authority or self.authority
        pair = self.authority.issue(Person(name), Use.SERVER, ips=[LOOPBACK], names=[name])
        stored(self.folder, "server", pair)
        self.certificate_files.callers.write_bytes(self.authority.certificate)

    def trust(self) -> CallerTrust:
        return CallerTrust(self.certificate_files, (NAME,))

    def caller(self, authority: Authority | None = None, name: str = NAME) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.authority.certificate.decode())
        if authority is not None:
            context.load_cert_chain(*stored(self.folder, "caller", authority.issue(Person(name), Use.CLIENT)))
        return context


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


@pytest.fixture
def trust(certificates: Certificates) -> CallerTrust:
    return certificates.trust()


@pytest.fixture
async def guarded(verbs: Verbs, trust: CallerTrust) -> AsyncIterator[Port]:
    async with a_port(verbs, trust) as port:
        yield port


async def test_over_tls_callers_of_our_authority_are_answered_and_nobody_else(
    guarded: Port, verbs: Verbs, certificates: Certificates
) -> None:
    async with connected(guarded, certificates.caller(certificates.authority)) as known:
        assert await asked(known, b"/a") == (200, b"{}")
    for stranger in (None, Authority("another")):
        with pytest.raises((OSError, asyncio.IncompleteReadError)):  # either TLS or the socket reports it first
            async with connected(guarded, certificates.caller(stranger)) as unknown:
                await asked(unknown, b"/b")
    with pytest.raises((OSError, asyncio.IncompleteReadError)):
        async with connected(guarded) as plain:
            await asked(plain, b"/b")
    assert verbs.asked == ["/a"]


@pytest.mark.parametrize("loop", LOOPS)
async def test_of_those_that_the_authority_vouches_for_callers_by_name_alone_are_answered(
    guarded: Port, verbs: Verbs, certificates: Certificates, loop: str
) -> None:
    for name in STRANGERS:
        async with connected(guarded, certificates.caller(certificates.authority, name)) as stranger:
            status, why = await asked(stranger, b"/bind")
            assert status == 403
            assert why.endswith(b"; allowed: system:kube-scheduler\n")
            assert await is_closed(stranger)
    assert not verbs.asked


async def test_who_is_refused_is_not_heard_out(guarded: Port, certificates: Certificates) -> None:
    caller = certificates.caller(certificates.authority, STRANGERS[0])
    async with connected(guarded, caller) as stranger:
        stranger[1].write(request(b" " * (1 << 20))[: 1 << 17])
        assert (await heard(stranger[0]))[0] == 403


@pytest.mark.parametrize("loop", LOOPS)
async def test_half_open_handshakes_are_few_and_keep_no_caller_out(
    guarded: Port, certificates: Certificates, loop: str
) -> None:
    async with AsyncExitStack() as stack:
        caller = certificates.caller(certificates.authority)
        known = await stack.enter_async_context(connected(guarded, caller))
        assert (await asked(known, b"/a"))[0] == 200
        half_open = [await stack.enter_async_context(connected(guarded)) for _ in range(5 * MOST_OF_ONE)]
        await until(lambda: sum(reader.at_eof() or reader.exception() is not None for reader, _ in half_open) >= 100)
        assert len([task for task in asyncio.all_tasks() if "_served" in repr(task)]) <= MOST_OF_ONE + 2
        assert (await asked(known, b"/a"))[0] == 200
        another = await stack.enter_async_context(connected(guarded, caller))
        assert (await asked(another, b"/a"))[0] == 200


async def test_a_handshake_that_does_not_end_is_cut(guarded: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HANDSHAKE_S", 0.05)
    async with connected(guarded) as half_open:
        half_open[1].write(b"\x16\x03\x01\x3e\x80\x01")
        assert await is_closed(half_open)


async def test_a_certificate_that_is_renewed_holds_for_new_connections(
    guarded: Port, certificates: Certificates, trust: CallerTrust
) -> None:
    keeping = asyncio.create_task(trust.keep_fresh(guarded.part, every_s=0.01))
    await asyncio.sleep(0.02)
    certificates.certificate_files.key.write_text("nonsense")
    await asyncio.sleep(0.05)
    caller = certificates.caller(certificates.authority)
    async with connected(guarded, caller) as conversation:
        assert (await asked(conversation, b"/a"))[0] == 200
        certificates.renew("anew")
        while "anew" not in await _subject(guarded, caller):  # noqa: ASYNC110 - each look is a connection
            await asyncio.sleep(0.02)
        assert (await asked(conversation, b"/a"))[0] == 200
    keeping.cancel()
    await asyncio.wait([keeping])


async def test_another_authority_holds_without_a_restart_and_who_was_believed_by_the_last_one_is_not(
    guarded: Port, certificates: Certificates, trust: CallerTrust
) -> None:
    before = certificates.authority
    keeping = asyncio.create_task(trust.keep_fresh(guarded.part, every_s=0.01))
    async with connected(guarded, certificates.caller(before)) as shape_scores:
        assert (await asked(shape_scores, b"/a"))[0] == 200
        certificates.renew(authority=Authority("new"))
        assert await is_closed(shape_scores)
    async with connected(guarded, certificates.caller(certificates.authority)) as known:
        assert (await asked(known, b"/a"))[0] == 200
    with pytest.raises((OSError, asyncio.IncompleteReadError)):
        async with connected(guarded, certificates.caller(before)) as unknown:
            await asked(unknown, b"/b")
    keeping.cancel()
    await asyncio.wait([keeping])


async def _subject(port: Port, caller: ssl.SSLContext) -> str:
    async with connected(port, caller) as (_, writer):
        return str(writer.get_extra_info("peercert"))


@pytest.mark.parametrize("missing", ["server.crt", "server.key", "ca.crt"])
def test_files_that_are_missing_are_a_mistake_in_the_configuration(certificates: Certificates, missing: str) -> None:
    (certificates.folder / missing).unlink()
    with pytest.raises(BadConfiguration, match=missing.replace(".", "[.]")):
        certificates.trust()
