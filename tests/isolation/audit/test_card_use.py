"""A card's use by processes, queried by a child that may die, hang or lose its driver: the result is right, or none."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isolation.audit.holders import MIB, holders
from partage_isolation.audit.facts import Blind, CardUse
from partage_isolation.audit.nvml import NvmlChild
from partage_plugins.api.names import CardId
from partage_simgpu.node import SimulatedNode
from rig.client.wait import patient
from support.kube import until
from support.procfs import status
from support.simgpu import NODE, card, card_uuid, simulated_node

pytestmark = pytest.mark.slow
ONE, TWO = (CardId(card_uuid(NODE, ordinal)) for ordinal in range(2))
NO_CARD = CardId("GPU-00000000-0000-0000-0000-000000000000")
PATIENT_S, HASTY_S = 600.0, 0.3


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    with simulated_node(tmp_path, cards=("h100", "h100")) as made:
        yield made


@asynccontextmanager
async def asked(
    root: Path, *, deadline_s: float = PATIENT_S, silent_s: float = PATIENT_S, paused: Callable[[], bool] = bool
) -> AsyncGenerator[NvmlChild]:
    nvml = NvmlChild(root, deadline_s=deadline_s, silent_s=silent_s, paused=paused)
    try:
        yield nvml
    finally:
        await nvml.close()
    assert nvml.pid is None


@pytest.fixture
async def nvml(node: SimulatedNode) -> AsyncIterator[NvmlChild]:
    async with asked(node.root) as nvml:
        yield nvml


async def sample(nvml: NvmlChild, card: CardId = ONE) -> CardUse:
    """Return the first sample."""
    async with patient("a sample comes"):
        while not isinstance(use := await nvml.use(card), CardUse):  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0.05)
    return use


def shown(pid: int | None, name: str) -> str:
    """The kernel's facts about a process."""
    return Path(f"/proc/{pid}/{name}").read_text()


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def gone(pid: int) -> None:
    await until(lambda: not is_there(pid))


async def test_every_process_has_the_bytes_that_the_card_has_of_it(node: SimulatedNode, nvml: NvmlChild) -> None:
    assert (await sample(nvml)).processes == {}
    with holders(node, mib=64) as (small,), holders(node, mib=512) as (large,):
        began_ns = time.monotonic_ns()
        use = await sample(nvml)
        assert began_ns <= use.taken_ns <= time.monotonic_ns()
        assert use.processes.keys() == {small, large}
        assert (use.processes[large] or 0) - (use.processes[small] or 0) == 448 * MIB
        assert sum(held or 0 for held in use.processes.values()) == node.status()[0].used_bytes
        assert (await sample(nvml, TWO)).processes == {}
    assert (await sample(nvml)).processes == {}


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """The root of a driver whose NVML lists processes of an MPS server."""
    library = tmp_path / "usr/lib64/libnvidia-ml.so.1"
    library.parent.mkdir(parents=True)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, Path(__file__).with_name("served.c")], check=True)
    return tmp_path


async def test_processes_of_an_mps_server_are_seen_once_each(served: Path) -> None:
    async with asked(served) as nvml:
        assert (await sample(nvml)).processes == {1: 30 * MIB, 2: 100 * MIB, 3: 200 * MIB}


@pytest.mark.parametrize("what", ["bytes", "lists"])
async def test_a_card_that_does_not_tell_what_processes_hold_is_blind_and_not_empty(
    node: SimulatedNode, what: str, nvml: NvmlChild
) -> None:
    with holders(node):
        await sample(nvml)
        node.control(f"blind 0 {what}")
        assert isinstance(await nvml.use(ONE), Blind)
        assert isinstance(await nvml.use(TWO), CardUse)
    node.control("blind 0 no")
    assert isinstance(await nvml.use(ONE), Blind), "that nobody is there proves nothing"
    with holders(node) as (pid,):
        assert (await sample(nvml)).processes.keys() == {pid}


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare of util-linux")
async def test_pids_are_the_hosts_also_of_processes_in_another_namespace(node: SimulatedNode, nvml: NvmlChild) -> None:
    before = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    with holders(node, before=before) as (inside,):
        (pid,) = (await sample(nvml)).processes
        status = shown(pid, "status")
        assert pid != inside
        assert f"NSpid:\t{pid}\t{inside}\n" in status


async def test_a_mig_instance_is_asked_by_its_own_name(tmp_path: Path) -> None:
    with simulated_node(tmp_path, cards=(card("h100", mig=("1g.10gb", "3g.40gb")),)) as cut:
        conf = (cut.root / "etc/simgpu/node.conf").read_text()
        instances = [CardId(found) for found in re.findall("MIG-[0-9a-f-]{36}", conf)]
        async with asked(cut.root) as nvml:
            with holders(cut) as (pid,):
                shown_by = {one: (await sample(nvml, one)).processes for one in instances}
            assert sorted(map(len, shown_by.values())) == [0, 1]
            assert {pid} in [found.keys() for found in shown_by.values()]


async def test_many_askers_are_answered_by_one_call(nvml: NvmlChild) -> None:
    await sample(nvml)
    assert nvml.pid is not None
    os.kill(nvml.pid, signal.SIGSTOP)  # no answer comes before all have asked
    first = asyncio.create_task(nvml.use(ONE))
    await asyncio.sleep(0)
    asked_ns = time.monotonic_ns()
    askers = [asyncio.create_task(nvml.use(ONE)) for _ in range(50)]
    await asyncio.sleep(0)
    os.kill(nvml.pid, signal.SIGCONT)
    others = await asyncio.gather(*askers)
    assert len({use.taken_ns for use in others if use is not None}) == 1
    assert None not in others
    alone = await first
    assert alone is not None
    assert alone.taken_ns < others[0].taken_ns if others[0] else False
    assert all(use.taken_ns >= asked_ns for use in others if use is not None)


async def test_a_card_that_nobody_knows_costs_the_others_nothing(nvml: NvmlChild) -> None:
    assert await nvml.use(NO_CARD) is None
    pid = nvml.pid
    assert (await sample(nvml)).processes == {}
    assert nvml.pid == pid


async def test_a_child_that_is_killed_is_replaced_within_the_question_and_again_and_again(nvml: NvmlChild) -> None:
    await sample(nvml)
    for number in range(3):
        assert nvml.pid is not None
        os.kill(nvml.pid, signal.SIGKILL)
        use = await nvml.use(ONE) if number == 0 else await sample(nvml)
        assert isinstance(use, CardUse)


async def test_a_driver_that_hangs_gives_no_answer_and_its_child_is_replaced(node: SimulatedNode) -> None:
    async with asked(node.root, deadline_s=HASTY_S, silent_s=HASTY_S) as nvml:
        while await nvml.use(ONE) is None:
            pass
        pid = nvml.pid
        assert pid is not None
        node.control("nvml hang")
        async with patient("questions end while the driver hangs"):
            assert await asyncio.gather(*(nvml.use(card) for card in (ONE, ONE, TWO))) == [None] * 3
        while nvml.pid == pid:
            assert await nvml.use(ONE) is None
        await gone(pid)
        node.control("nvml resume")
        await sample(nvml)


@pytest.mark.parametrize("fault", ["reload", "nvml answer 999", "nvml answer 18"])
async def test_a_driver_that_is_another_one_is_opened_anew(node: SimulatedNode, fault: str, nvml: NvmlChild) -> None:
    await sample(nvml)
    pid = nvml.pid
    node.control(fault)
    await nvml.use(ONE)
    if fault != "reload":
        node.control("nvml answer 0")
    await sample(nvml)
    assert nvml.pid != pid


async def test_a_library_that_was_upgraded_is_loaded_anew_with_the_driver(node: SimulatedNode, nvml: NvmlChild) -> None:
    await sample(nvml)
    link = node.libraries / "libnvidia-ml.so.1"
    newer = link.resolve().with_name("libnvidia-ml.so.999.99")
    shutil.copy2(link.resolve(), newer)
    link.unlink()
    link.symlink_to(newer.name)
    node.restart()
    await sample(nvml)
    assert newer.name in shown(nvml.pid, "maps")


async def test_a_node_without_a_driver_answers_nothing(tmp_path: Path) -> None:
    async with asked(tmp_path) as nvml:
        assert await nvml.use(ONE) is None
        assert nvml.pid is None


async def test_while_the_driver_is_to_be_let_go_there_is_no_child(node: SimulatedNode) -> None:
    paused = False
    async with asked(node.root, paused=lambda: paused) as nvml:
        await sample(nvml)
        pid = nvml.pid
        assert pid is not None
        paused = True
        nvml.tidy()
        await gone(pid)
        assert await nvml.use(ONE) is None
        assert nvml.pid is None
        paused = False
        await sample(nvml)


async def test_a_question_that_is_given_up_harms_nobody(node: SimulatedNode) -> None:
    async with asked(node.root) as nvml:
        await sample(nvml)
        for _ in range(20):
            given_up = [asyncio.create_task(nvml.use(ONE)) for _ in range(3)]
            await asyncio.sleep(0)
            for task in given_up:
                task.cancel()
            await asyncio.gather(*given_up, return_exceptions=True)
            assert await nvml.use(ONE) is not None


PARENT = """
import asyncio, sys
from pathlib import Path
from partage_isolation.audit.nvml import NvmlChild
async def main():
    nvml = NvmlChild(Path(sys.argv[1]), deadline_s=600)
    assert await nvml.use(sys.argv[2])
    print(nvml.pid, flush=True)
    await asyncio.sleep(3600)
asyncio.run(main())
"""


@pytest.mark.parametrize("hangs", [False, True])
def test_a_child_ends_with_its_parent(node: SimulatedNode, *, hangs: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, node.root, ONE], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        if hangs:
            node.control("nvml hang")
        parent.kill()
    asyncio.run(gone(pid))


async def test_the_child_is_small(nvml: NvmlChild) -> None:
    await sample(nvml)
    assert nvml.pid is not None
    assert status(nvml.pid, "RssAnon") < 12 * 1024
