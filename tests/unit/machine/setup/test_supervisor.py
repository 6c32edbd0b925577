"""The supervisor keeps programs running, forwards their output, and ends them in reverse order."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from partage_cli.machine.setup.services import Service
from partage_cli.machine.setup.supervisor import Supervisor
from rig.client.wait import patient
from rig.patience import patience_s


class Said(list[str]):
    """Lines of output, and a wait for one of them."""

    def __init__(self) -> None:
        super().__init__()
        self._more = asyncio.Event()

    def __call__(self, line: str) -> None:
        self.append(line)
        self._more.set()

    async def wait(self, has: str, times: int = 1) -> None:
        async with patient(f"it says {has!r}", seen=lambda: list(self)):
            while sum(has in line for line in self) < times:
                self._more.clear()
                await self._more.wait()


def shell(name: str, script: str) -> Service:
    return Service(name=name, about="", argv=("/bin/sh", "-c", script))


async def supervised(story: Callable[[Said], Awaitable[None]], *every: Service) -> list[str]:
    said = Said()
    supervisor = Supervisor(Path("/"), every, say=said)
    supervisor.start()
    try:
        await story(said)
    finally:
        await supervisor.stop()
    return said


def test_what_dies_starts_again_later_each_time() -> None:
    async def story(said: Said) -> None:
        await said.wait("ended with status 7", 2)

    said = asyncio.run(supervised(story, shell("one", "exit 7")))
    assert said[:2] == [f"one ended with status 7; it starts again in {wait} s" for wait in ("0.1", "0.2")]


def test_a_program_that_is_not_there_is_tried_again_in_words() -> None:
    async def story(said: Said) -> None:
        await said.wait("cannot be started", 2)

    missing = Service(name="one", about="", argv=("/nowhere/one",))
    assert asyncio.run(supervised(story, missing))[0].startswith("one cannot be started: No such file")


def test_lines_have_their_programs_name_and_neither_escapes_nor_endless_length() -> None:
    async def story(said: Said) -> None:
        await said.wait("two |", 2)

    script = r"printf '\033[31mred\n'; head -c 100000 /dev/zero | tr '\0' x; echo; sleep 60"
    said = asyncio.run(supervised(story, shell("two", script)))
    assert said[0] == "two | ?[31mred"
    assert max(map(len, said)) < 10_000


def test_the_end_is_asked_for_in_the_reverse_order_and_none_starts_again() -> None:
    async def story(said: Said) -> None:
        for name in "abc":
            await said.wait(f"{name} | up")

    script = "trap 'echo ends; exit 0' TERM; echo up; while :; do sleep 0.02; done"
    said = asyncio.run(supervised(story, *(shell(name, script) for name in "abc")))
    assert [line for line in said if "up" not in line] == [f"{name} | ends" for name in "cba"]


@pytest.mark.slow
def test_programs_end_with_a_supervisor_that_is_killed() -> None:
    code = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from partage_cli.machine.setup.services import Service\n"
        "from partage_cli.machine.setup.supervisor import Supervisor\n"
        "async def main():\n"
        "    one = Service(name='one', about='', argv=('/bin/sh', '-c', 'echo $$; exec sleep 60'))\n"
        "    Supervisor(Path('/'), [one], say=lambda line: print(line, flush=True)).start()\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        descriptor = os.pidfd_open(int(running.stdout.readline().rpartition("| ")[2]))
        running.send_signal(signal.SIGKILL)
        running.wait()
    try:
        assert select.select([descriptor], [], [], patience_s())[0]
    finally:
        os.close(descriptor)
