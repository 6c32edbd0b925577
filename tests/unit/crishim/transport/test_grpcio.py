"""Between a client and a server of grpcio, whose HTTP/2 is not that of kubelet and containerd."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from partage_crishim.splice import Splicer
from partage_crishim.verdicts import Code, Ending, HeldCall, Pass, Refuse, Rewrite, Verdict
from support.splice import grpc_ends
from support.splice.grpc_ends import digest
from support.splice.sockets import listening_at

pytestmark = pytest.mark.slow


MIB = 1 << 20
Answer = dict[str, Any]


class End:
    """One of the two processes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def says(self) -> Answer:
        assert self.process.stdout is not None
        async with asyncio.timeout(30):
            return cast("Answer", json.loads(await self.process.stdout.readline()))

    async def call(self, method: str, **how: object) -> Answer:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"method": method, **how}).encode() + b"\n")
        return await self.says()


@asynccontextmanager
async def end(kind: str, socket: Path) -> AsyncGenerator[End, None]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, grpc_ends.__file__, kind, socket, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield End(process)
    finally:
        process.kill()
        await process.communicate()


class PendingVerdicts:
    def __init__(self) -> None:
        self.messages: list[str] = []
        self.endings: list[Ending] = []
        self.verdict: Verdict | None = None

    async def __call__(self, call: HeldCall) -> Verdict:
        self.messages.append(digest(call.message))
        await asyncio.sleep(0.001)
        return self.verdict or Pass(self.endings.append)


async def test_calls_of_every_kind(tmp_path: Path) -> None:
    judge = PendingVerdicts()

    splicer = Splicer(tmp_path / "runtime.sock", judge)
    with listening_at(tmp_path / "splice.sock") as listening:
        splicer.serve(listening)
        async with end("runtime", tmp_path / "runtime.sock") as runtime:
            assert (await runtime.says())["ready"]
            async with end("client", tmp_path / "splice.sock") as client:
                await passed(client, runtime)
                await held(client, runtime, judge)
                assert splicer.counters.broken == 0
                assert splicer.counters.connections == 1
        await splicer.close()


async def passed(client: End, runtime: End) -> None:
    for size in (0, 1, 20_000, 5 * MIB):
        echoed = await client.call("Version", size=size)
        assert echoed["got"] == (await runtime.says())["got"] == digest((b"0123456789" * (size // 10 + 1))[:size])
    failed = await client.call("Status")
    assert (failed["code"], failed["details"]) == ("FAILED_PRECONDITION", "not thís\n")
    assert failed["trailing"] == {"x-more-bin": digest(bytes(range(256))), "x-long": digest(b"l" * 6000)}
    assert (await client.call("GetContainerEvents", size=2))["messages"] == [f"01{number}" for number in range(5)]
    assert (await client.call("ExecSync", timeout=0.2))["code"] == "DEADLINE_EXCEEDED"
    assert [await runtime.says(), await runtime.says()] == [{"hanging": True}, {"cancelled": True}]
    assert (await client.call("ExecSync", cancel=0.2))["code"] == "CANCELLED"
    assert [await runtime.says(), await runtime.says()] == [{"hanging": True}, {"cancelled": True}]


async def held(client: End, runtime: End, judge: PendingVerdicts) -> None:
    for size, gzip in ((2000, False), (3 * MIB, False), (3 * MIB, True)):
        echoed = await client.call("CreateContainer", size=size, gzip=gzip)
        assert echoed["got"] == (await runtime.says())["got"] == judge.messages.pop()
    assert judge.endings == [Ending.DONE] * 3
    for size, gzip in ((2000, False), (3 * MIB, True)):
        judge.verdict = Rewrite(b"new" * MIB, judge.endings.append)
        assert (await client.call("CreateContainer", size=size, gzip=gzip))["code"] == "OK"
        assert (await runtime.says())["got"] == digest(b"new" * MIB)
    judge.verdict = Refuse(Code.FAILED_PRECONDITION, "partage: 100 % refusé")
    for _ in range(3):
        refused = await client.call("CreateContainer", size=MIB)
        assert (refused["code"], refused["details"]) == ("FAILED_PRECONDITION", "partage: 100 % refusé")
    too_large = await client.call("CreateContainer", size=17 * MIB)
    assert too_large["code"] == "RESOURCE_EXHAUSTED"
    assert (await client.call("Version", size=MIB))["code"] == "OK"
    assert (await runtime.says())["got"]
    assert judge.endings == [Ending.DONE] * 5
