"""Over real sockets: which side is read when, which is closed when, and what is left afterwards."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from partage_base.daemon.exposition import Sample
from partage_crishim.decisions import Code, Decision, Ending, InterceptedCall, Pass, Refuse, Rewrite
from partage_crishim.proxy import ProxyServer
from rig.client.wait import patient
from support.sockets import listening
from support.splice import wire
from support.splice.sockets import passing, pause, stage, until
from support.splice.wire import CREATE, VERSION

pytestmark = pytest.mark.slow


MIB = 1 << 20


async def test_calls_pass_and_are_counted_by_method(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        client = await on.connect()
        for _ in range(3):
            assert (await client.call(VERSION)).got == wire.message(b"answer %d" % (max(client.model.calls)))
        assert (await client.call(VERSION, bytes(MIB))).is_over
        counters = on.proxy.counters
        assert counters.calls == {VERSION: 4}
        assert counters.from_client_bytes > MIB
        assert (counters.connections, counters.open_connections) == (1, 1)


async def test_a_held_call_goes_on_as_the_judge_says(tmp_path: Path) -> None:
    endings: list[Ending] = []

    async def admission(call: InterceptedCall) -> Decision:
        await asyncio.sleep(0)
        if b"deny" in call.message:
            return Refuse(Code.FAILED_PRECONDITION, "partage: no")
        return Rewrite(call.message * 2, endings.append) if call.message else Pass(endings.append)

    async with stage(tmp_path, admission) as on:
        client = await on.connect()
        assert (await client.call(CREATE, bytes(2 * MIB))).got
        ((runtime, _),) = on.runtime.connections
        assert runtime.calls[1].got == wire.message(bytes(4 * MIB))
        assert ("grpc-status", "9") in (await client.call(CREATE, b"deny")).headers
        assert (await client.call(CREATE)).got
        assert endings == [Ending.DONE, Ending.DONE]
        assert on.proxy.counters.held == {"rewritten": 1, "refused": 1, "passed": 1}
        assert Sample(3, {}, "_count") in on.proxy.counters.judging.samples({})


async def test_a_judge_that_raises_costs_that_call_and_is_reported(tmp_path: Path) -> None:
    async def admission(_: InterceptedCall) -> Decision:
        raise RuntimeError("a defect")

    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: reported.append(about["exception"]))
    async with stage(tmp_path, admission) as on:
        client = await on.connect()
        assert ("grpc-status", "13") in (await client.call(CREATE, b"x")).headers
        assert (await client.call(VERSION)).got
    assert [str(error) for error in reported] == ["a defect"]


async def test_a_cancelled_call_cancels_its_judge(tmp_path: Path) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def admission(_: InterceptedCall) -> Decision:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return Pass()

    async with stage(tmp_path, admission) as on:
        client = await on.connect()
        stream = client.begin(CREATE, b"x")
        async with patient("the judge begins"):
            await begun.wait()
        client.model.cancel(stream)
        assert (await client.call(VERSION)).got
        async with patient("the judge is cancelled"):
            await cancelled.wait()
        assert on.proxy.counters.held == {"dropped": 1}


@pytest.mark.parametrize("how", ["client", "runtime"])
async def test_an_end_on_one_side_ends_the_other_and_approvals_are_told(tmp_path: Path, how: str) -> None:
    endings: list[Ending] = []

    async def admission(_: InterceptedCall) -> Decision:
        return Pass(endings.append)

    async with stage(tmp_path, admission) as on:
        on.runtime.answers = False
        client = await on.connect()
        client.begin(CREATE, b"x")
        await until(lambda: bool(on.runtime.connections and on.runtime.connections[0][0].calls.get(1)))
        ((runtime, writer),) = on.runtime.connections
        await until(lambda: runtime.calls[1].is_sent)
        if how == "client":
            client.writer.close()
        else:
            writer.close()
            assert await client.is_closed()
        await until(lambda: on.proxy.counters.open_connections == 0)
        assert endings == [Ending.UNKNOWN]


@pytest.mark.parametrize(
    "garbage", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", os.urandom(4000), wire.PREFACE + b"\xff" * 99]
)
async def test_a_broken_client_costs_only_its_own_connection(tmp_path: Path, garbage: bytes) -> None:
    async with stage(tmp_path) as on:
        good, bad, silent = await on.connect(), await on.connect(), await on.connect()
        assert (await good.call(VERSION)).got
        bad.writer.write(garbage)
        async with patient("the broken connection ends"):
            while await bad.reader.read(1000):
                pass
        assert (await good.call(VERSION)).got
        silent.writer.write(wire.PREFACE[:5])
        assert (await good.call(VERSION)).got
        assert on.proxy.counters.broken == 1


async def taken_of(writer: asyncio.StreamWriter, data: bytes, most: int) -> int:
    """How many bytes are accepted from the writer before the other side stops reading."""
    taken = 0
    while taken < most:
        writer.write(data)
        taken += len(data)
        try:
            await asyncio.wait_for(writer.drain(), 0.5)
        except TimeoutError:
            break
    return taken


async def test_a_client_that_does_not_read_stops_the_runtime(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        client = await on.connect()
        stream = client.begin(VERSION, b"x")
        await until(lambda: bool(on.runtime.connections and on.runtime.connections[0][0].calls))
        pause(client.writer)
        ((_, writer),) = on.runtime.connections
        frame = bytes(wire.Frame(wire.DATA, 0, stream, bytes(16384)))
        assert await taken_of(writer, frame * 16, 64 * MIB) < 8 * MIB
        other = await on.connect()
        assert (await other.call(VERSION)).got


async def test_a_runtime_that_does_not_read_stops_the_client(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        client = await on.connect()
        assert (await client.call(VERSION)).got
        ((_, writer),) = on.runtime.connections
        pause(writer)
        ping = bytes(wire.Frame(wire.PING, 0, 0, b"12345678"))
        assert await taken_of(client.writer, ping * 10_000, 64 * MIB) < 8 * MIB


async def test_a_client_that_takes_no_answers_of_ours_is_not_read_for_ever(tmp_path: Path) -> None:
    async def admission(_: InterceptedCall) -> Decision:
        return Refuse(Code.FAILED_PRECONDITION, "no" * 2000)

    async with stage(tmp_path, admission) as on:
        client = await on.connect()
        assert (await client.call(VERSION)).got
        pause(client.writer)
        for _ in range(20_000):
            stream = client.model.open(CREATE, b"")
            client.model.send(wire.Frame(wire.DATA, 1, stream, wire.message(b"x")))
        await taken_of(client.writer, bytes(client.model.out), 1)
        client.model.out.clear()
        await until(lambda: on.proxy.counters.calls[CREATE] > 0)
        await asyncio.sleep(0.5)  # for what must not go on
        assert on.proxy.counters.calls[CREATE] < 10_000, "the rest waits in the socket"


async def test_while_the_runtime_is_away_calls_fail_at_once_and_clients_are_called_back(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.runtime.stop()
        client = await on.connect()
        for method in (VERSION, CREATE):
            headers = dict((await client.call(method, bytes(100_000))).headers)
            assert headers["grpc-status"] == "14"
            assert headers["grpc-message"].endswith('runtime.sock: connect: no such file or directory"')
        await on.runtime.start()
        assert await client.is_closed()
        assert client.model.is_told_to_go
        again = await on.connect()
        assert (await again.call(VERSION)).got


async def test_draining_waits_for_calls_and_new_clients_find_the_next_process(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.runtime.answers = False
        client = await on.connect()
        stream = client.begin(VERSION, b"x")
        await until(lambda: bool(on.runtime.connections and on.runtime.connections[0][0].calls))
        draining = asyncio.ensure_future(on.proxy.drain(within_s=60))
        while not client.model.is_told_to_go:
            await client.listen()
        on.listening.close()
        on.path.unlink()
        on.runtime.answers = True
        following = ProxyServer(on.runtime.path, passing)
        with listening(on.path) as again:
            following.serve(again)
            assert (await (await on.connect()).call(VERSION)).got
            await following.close()
        assert not draining.done()
        ((runtime, _), *_) = on.runtime.connections
        runtime.answer(stream, b"answer %d" % stream)
        on.runtime.flush()
        assert (await client.end(stream)).got
        await draining
        assert await client.is_closed()


async def test_what_is_not_done_at_the_deadline_is_cut_off(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.runtime.answers = False
        client = await on.connect()
        client.begin(VERSION, b"x")
        await until(lambda: bool(on.runtime.connections and on.runtime.connections[0][0].calls))
        await on.proxy.drain(0.2)
        assert await client.is_closed()
