"""Clients of the manager: those who go, who say too much, who do not read, and one too many."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from partage_cli.machine.manager.errors import Objection
from partage_cli.machine.manager.server import Say, Server
from partage_cli.machine.wire.messages import (
    MANAGER_SOCKET,
    MAX_CONNECTIONS,
    MAX_QUESTION_BYTES,
    Answer,
    Done,
    DoneWait,
    Event,
    Events,
    Hello,
    Last,
    No,
    Ps,
    Question,
    Rm,
    Wait,
    question_line,
    read_answer,
)


class Scripted:
    """Says no to `rm`, waits for ever at `wait`, fails at `ps`, and tells events for ever."""

    def __init__(self) -> None:
        self.given_up = asyncio.Event()
        self.told = 0

    async def answer(self, question: Question, say: Say) -> Last:
        match question:
            case Rm():
                raise Objection("unknown-name", "there is no pod a")
            case Wait():
                try:
                    await asyncio.Event().wait()
                finally:
                    self.given_up.set()
            case Ps():
                raise ZeroDivisionError
            case Events():
                while True:
                    await say(Event(at_ns=1, kind="die", text="x" * 4096))
                    self.told += 1
            case _:
                return Done()
        return DoneWait(exit_code=0)


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, line: bytes) -> Answer:
        self.writer.write(line)
        return await self.hear()

    async def hear(self) -> Answer:
        return read_answer(await self.reader.readline())

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


@asynccontextmanager
async def serving(root: Path, scripted: Scripted) -> AsyncGenerator[None]:
    server = Server(Hello(manager="1", simulated=True), scripted)
    await server.open(root, "")
    try:
        yield
    finally:
        await server.close()


async def connected(root: Path) -> Client:
    client = Client(*await asyncio.open_unix_connection(root / MANAGER_SOCKET))
    assert await client.hear() == Hello(manager="1", simulated=True)
    return client


async def test_questions_are_answered_one_after_the_other_and_a_no_or_a_defect_ends_none_but_its_own(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, Scripted()):
        client = await connected(tmp_path)
        no = await client.ask(question_line(Rm(name="a")) + question_line(Ps()))
        assert no == No(code="unknown-name", why="there is no pod a")
        defect = await client.hear()
        assert isinstance(defect, No)
        assert "ZeroDivisionError" in defect.why
        wrong = await client.ask(b'{"do":"fly"}\n')
        assert isinstance(wrong, No)
        assert wrong.code == "bad-question"
        await client.close()


async def test_who_goes_gives_its_question_up(tmp_path: Path) -> None:
    scripted = Scripted()
    async with serving(tmp_path, scripted):
        client = await connected(tmp_path)
        client.writer.write(question_line(Wait(name="a")))
        await client.writer.drain()
        await client.close()
        await scripted.given_up.wait()


async def test_a_line_without_an_end_is_refused_at_its_limit(tmp_path: Path) -> None:
    async with serving(tmp_path, Scripted()):
        client = await connected(tmp_path)
        answer = await client.ask(b"x" * (2 * MAX_QUESTION_BYTES))
        assert isinstance(answer, No)
        assert str(MAX_QUESTION_BYTES) in answer.why
        assert await client.reader.read() == b""
        await client.close()


async def test_one_connection_too_many_is_told_so_and_has_room_once_another_has_gone(tmp_path: Path) -> None:
    async with serving(tmp_path, Scripted()):
        clients = [await connected(tmp_path) for _ in range(MAX_CONNECTIONS)]
        late = await connected(tmp_path)
        answer = await late.hear()
        assert isinstance(answer, No)
        assert answer.code == "too-many"
        await late.close()
        await clients.pop().close()
        client = await connected(tmp_path)
        assert isinstance(await client.ask(question_line(Rm(name="a"))), No)
        for each in (*clients, client):
            await each.close()


async def test_what_a_slow_reader_does_not_read_is_not_made(tmp_path: Path) -> None:
    scripted = Scripted()
    async with serving(tmp_path, scripted):
        client = await connected(tmp_path)
        client.writer.write(question_line(Events()))
        before = -1
        while before != scripted.told:  # until no more of it goes anywhere
            before = scripted.told
            for _ in range(1000):
                await asyncio.sleep(0)
        assert 0 < scripted.told < 1000
        client.writer.transport.abort()


async def test_root_alone_may_ask_unless_a_group_is_named(tmp_path: Path) -> None:
    async with serving(tmp_path, Scripted()):
        assert stat.S_IMODE((tmp_path / MANAGER_SOCKET).stat().st_mode) == 0o600
