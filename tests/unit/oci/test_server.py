"""The socket of the agent: root only, lines of bounded length, and an answer to every error."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from partage_base.peers import Peer
from partage_oci import server as server_module
from partage_oci.client import AgentAway, AgentClient
from partage_oci.messages import (
    MAX_LINE_BYTES,
    Answer,
    Create,
    Delete,
    Go,
    Held,
    Question,
    Tell,
    Told,
    Wait,
    Waits,
    answer_line,
    question_line,
    read_answer,
    read_question,
    refusal,
)
from partage_oci.server import Server
from partage_plugins.api import CardId, GpuGrant
from partage_plugins.api.places import OCI_SOCKET
from partage_plugins.errors import PluginBroken, Refused

CONTRACTS = (Path(__file__).parents[3] / "docs/contracts.md").read_text()
ID = "54593e04" * 8
_GRANT = GpuGrant(card=CardId("GPU-6f0c"), share_milli=300, limit_milli=1000, memory_bytes=4 << 30)
CREATE = {"ask": "create", "id": ID, "bundle": "/b", "root": "/r", "runtime": "/usr/bin/runc"}


class Agent:
    def __init__(self) -> None:
        self.asked: list[tuple[Question, int]] = []
        self.waiting: list[tuple[str, ...]] = []
        self.error: Exception | None = None
        self.free = asyncio.Event()
        self.free.set()

    async def create(self, question: Create, peer: Peer) -> Go:
        self.asked.append((question, peer.pid))
        await self.free.wait()
        if self.error is not None:
            raise self.error
        return Go(runtime="/usr/bin/runc")

    def delete(self, question: Delete, peer: Peer) -> None:
        self.asked.append((question, peer.pid))

    def tell(self) -> Told:
        return Told(agent="0.1.0", containers=())

    async def wait(self, question: Wait, waits: Callable[[str], None]) -> None:
        self.waiting.append(question.env)
        waits("no card has room")
        try:
            await self.free.wait()
            if self.error is not None:
                raise self.error
        finally:
            self.waiting.remove(question.env)


class Site:
    def __init__(self, root: Path) -> None:
        self.root, self.agent, self.broken = root, Agent(), list[str]()
        self.server = Server(self.agent, broken=self.broken.append)

    async def line(self, line: bytes) -> bytes:
        return await asyncio.to_thread(self._line, line)

    def _line(self, line: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(self.root / OCI_SOCKET))
            with contextlib.suppress(ConnectionError):  # the server has read enough
                peer.sendall(line)
            return peer.recv(1 << 16)

    async def ask(self, **question: Any) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self.line(json.dumps(question).encode() + b"\n"))
        return found


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(tmp_path)
    await made.server.open(tmp_path)
    yield made
    await made.server.close()


async def test_a_create_is_answered_and_the_kernel_says_who_asks(site: Site) -> None:
    assert await site.ask(**CREATE, later="field") == {"answer": "go", "runtime": "/usr/bin/runc"}
    ((question, pid),) = site.agent.asked
    assert (question, pid) == (Create(id=ID, bundle="/b", root="/r", runtime="/usr/bin/runc"), os.getpid())


async def test_a_delete_has_no_answer(site: Site) -> None:
    assert await site.line(json.dumps({"ask": "delete", "id": ID}).encode() + b"\n") == b""
    assert site.agent.asked == [(Delete(id=ID), os.getpid())]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (Refused("partage: no card has room"), "no card has room"),
        (OSError(28, "No space left on device", "/run/x"), "/run/x: No space left on device; make room there"),
        (TimeoutError(), "it took too long"),
        (ZeroDivisionError(), "the agent failed at this (ZeroDivisionError); see partage-agent's log"),
    ],
)
async def test_whatever_goes_wrong_is_answered_in_a_sentence(site: Site, error: Exception, why: str) -> None:
    site.agent.error = error
    answer = await site.ask(**CREATE)
    assert answer["answer"] == "no"
    assert answer["why"].startswith(why)
    assert site.broken == []


async def test_an_agent_that_lost_count_answers_and_ends(site: Site) -> None:
    site.agent.error = PluginBroken("gpu", "partage_take", "failed twice")
    assert "partage-agent starts again" in (await site.ask(**CREATE))["why"]
    assert site.broken == ["plugin gpu: partage_take: failed twice"]


@pytest.mark.parametrize(
    "line",
    [b"\n", b"{}\n", b'{"ask":"create"}\n', b"\xff\n", b"x" * (2 * MAX_LINE_BYTES), b'{"ask":"create","id":"short"}\n'],
)
async def test_what_is_no_question_is_refused_and_asks_nobody(site: Site, line: bytes) -> None:
    assert json.loads(await site.line(line))["answer"] == "no"
    assert site.agent.asked == []


async def test_only_root_is_answered(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.geteuid() + 1
    monkeypatch.setattr("partage_oci.server.os.geteuid", lambda: other)
    assert await site.ask(**CREATE) == {"answer": "no", "why": "only root on this machine may ask the agent"}
    assert site.agent.asked == []
    assert (site.root / OCI_SOCKET).stat().st_mode & 0o777 == 0o600


async def test_more_than_so_many_at_once_are_turned_away(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 2)
    site.agent.free.clear()
    first = [asyncio.create_task(site.ask(**CREATE)) for _ in range(2)]
    while len(site.agent.asked) < 2:  # noqa: ASYNC110  of the fake, which has no events
        await asyncio.sleep(0.001)
    assert "2 containers are being created already" in (await site.ask(**CREATE))["why"]
    site.agent.free.set()
    assert [(await each)["answer"] for each in first] == ["go", "go"]


async def test_who_waits_is_told_why_and_then_to_go(site: Site) -> None:
    site.agent.free.clear()
    said = list[str]()

    def waits(why: str) -> None:
        said.append(why)
        loop.call_soon_threadsafe(site.agent.free.set)

    loop = asyncio.get_running_loop()
    await asyncio.to_thread(AgentClient(site.root).wait, ("PARTAGE_SHARE=300",), waits)
    assert said == ["no card has room"]
    site.agent.error = Refused("partage: no card will ever have it")
    with pytest.raises(Refused, match=r"^no card will ever have it$"):
        await asyncio.to_thread(AgentClient(site.root).wait, ("PARTAGE_SHARE=300",), said.append)


async def test_who_waits_and_leaves_waits_no_longer_and_keeps_nobody_away(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 1)
    site.agent.free.clear()
    reader, writer = await asyncio.open_unix_connection(str(site.root / OCI_SOCKET))
    writer.write(question_line(Wait(env=("PARTAGE_SHARE=300",))))
    assert json.loads(await reader.readline()) == {"answer": "waits", "why": "no card has room"}
    assert (await asyncio.to_thread(AgentClient(site.root).tell)).agent == "0.1.0"
    writer.close()
    await writer.wait_closed()
    while site.agent.waiting:  # noqa: ASYNC110  of the fake, which has no events
        await asyncio.sleep(0.001)


async def test_an_agent_that_is_away_is_said_with_what_starts_it(tmp_path: Path) -> None:
    with pytest.raises(AgentAway, match=r"no agent answers at .*; `partage up` starts it"):
        AgentClient(tmp_path).tell()


def test_the_lines_of_the_contract_are_questions_and_answers() -> None:
    block = CONTRACTS.partition("`partage-oci` and the agent exchange")[2].partition("```json\n")[2].partition("```")[0]
    lines = [line.replace("…", "0" * 28).encode() for line in block.splitlines()]
    asked = [read_question(line) for line in lines if line.startswith(b'{"ask"')]
    assert {type(each) for each in asked} == {Create, Delete, Tell, Wait}
    answered = {json.loads(line)["answer"]: json.loads(line) for line in lines if line.startswith(b'{"answer"')}
    held = Held(id="54593e04" + "0" * 28, n=1, stage="kept", kept_s=41.0, grants=(_GRANT,))
    told, waits = Told(agent="0.1.0", containers=(held,)), Waits(why=answered["waits"]["why"])
    written: list[Answer] = [Go(), refusal(answered["no"]["why"]), waits, told]
    assert [json.loads(answer_line(each)) for each in written] == [
        answered[each] for each in ("go", "no", "waits", "told")
    ]
    assert [read_answer(answer_line(each)) for each in written] == written
