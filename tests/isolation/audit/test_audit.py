"""Audits of real processes on a simulated card: honest ones are left alone, dishonest ones are found and stopped."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from isolation.audit.holders import MIB, holders
from partage_base.daemon.metrics import Metrics
from partage_isolation.audit.auditor import AuditFigures, Auditor
from partage_isolation.audit.engagement import Engagement
from partage_isolation.audit.facts import ContainerFacts, ProcessFacts
from partage_isolation.audit.listing import Listing, RuntimeContainer
from partage_isolation.audit.mounts import InstalledFiles
from partage_isolation.audit.nvml import NvmlChild
from partage_isolation.audit.proofs import Expected, birth
from partage_isolation.audit.report_files import ReportFiles
from partage_isolation.audit.suspicions import Rules
from partage_isolation.store.folders import OBJECTS
from partage_plugins.api.names import CardId, ContainerKey
from partage_simgpu.node import SimulatedNode
from support.simgpu import NODE, card_uuid, simulated_node
from unit.isolation.watching.scenes import KEY, container, row

pytestmark = pytest.mark.slow
CARD = CardId(card_uuid(NODE, 0))
ID = "ab" * 32


class NoMounts(InstalledFiles):
    """These processes have no mounts of ours; checks of mounts are tested elsewhere."""

    def expected(self, container: RuntimeContainer) -> tuple[Expected, ...]:
        return ()


class Stage:
    """A broker's surroundings, of which only cards and processes are real."""

    def __init__(self, root: Path, node: SimulatedNode) -> None:
        self.node, self.proc, self.root = node, root / "proc", root
        self.proc.mkdir()
        self.library = root / "library/1.0" / OBJECTS[0]
        self.library.parent.mkdir(parents=True)
        self.library.write_bytes(bytes(8192))
        self.rows: list[ProcessFacts] = []
        self.inside: set[int] = set()
        self.stopped: list[str] = []

    def lend(self, pid: int, mib: int) -> None:
        """Lend memory as a broker does before a process allocates it."""
        born = birth(Path(f"/proc/{pid}/stat").read_text())
        assert born is not None
        plain = row(pid, mib * MIB, card=CARD)
        self.rows.append(ProcessFacts(pid, born.start, KEY, connected=True, cards=plain.cards))

    def put_inside(self, *pids: int) -> None:
        """From now on they are in the container."""
        for pid in pids:
            folder = self.proc / str(pid)
            (folder / "ns").mkdir(parents=True, exist_ok=True)
            for name in ("stat", "maps", "mountinfo", "ns/mnt"):
                (folder / name).symlink_to(f"/proc/{pid}/{name}")
            (folder / "cgroup").write_text(f"0::/kubepods/pod1/{ID}\n")
            self.inside.add(pid)

    def put_outside(self, pid: int) -> None:
        """From now on it is in no container of ours."""
        (self.proc / str(pid) / "cgroup").write_text("0::/user.slice\n")

    def facts(self) -> Sequence[ContainerFacts]:
        alive = [one for one in self.rows if Path(f"/proc/{one.pid}").exists()]
        plain = container(*alive, limit=65536 * MIB)
        (limits,) = plain.cards.values()
        return (ContainerFacts(KEY, plain.pod, plain.container, 1, {CARD: limits}, tuple(alive)),)

    def forget(self, key: ContainerKey) -> None:
        raise AssertionError("nobody is gone")

    async def containers(self, *, with_claims: bool = False) -> Listing | None:
        assert not with_claims
        return Listing([RuntimeContainer(ID, KEY, None, running=True)])

    async def stop(self, container_id: str, *, grace_s: int) -> None:
        self.stopped.append(container_id)
        for pid in self.inside:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with simulated_node(tmp_path, cards=("h100",)) as node:
        yield Stage(tmp_path, node)


@pytest.fixture
async def nvml(stage: Stage) -> AsyncIterator[NvmlChild]:
    nvml = NvmlChild(stage.node.root, deadline_s=600, silent_s=600)
    yield nvml
    await nvml.close()


@pytest.fixture
async def auditor(stage: Stage, nvml: NvmlChild) -> AsyncIterator[Auditor]:
    auditor = Auditor(
        books=stage,
        nvml=nvml,
        runtime=stage,
        engagement=Engagement(NoMounts(stage.root / "library", stage.root), proc=stage.proc),
        board=ReportFiles(stage.root),
        figures=AuditFigures(Metrics("broker")),
        rules=Rules(apart_s=0.0),
    )
    yield auditor
    await auditor.close()


async def ticks(auditor: Auditor, times: int) -> list[set[str]]:
    found: list[set[str]] = []
    for _ in range(times):
        await auditor.tick()
        found.append({one.kind for one in auditor.findings})
        await asyncio.sleep(0.01)
    return found


async def test_honest_processes_are_left_alone(stage: Stage, auditor: Auditor) -> None:
    with holders(stage.node, count=50, library=stage.library) as pids:
        stage.put_inside(*pids)
        for pid in pids:
            stage.lend(pid, 1024)
        assert await ticks(auditor, 5) == [set()] * 5
    assert await ticks(auditor, 3) == [set()] * 3
    assert stage.stopped == []


async def test_a_process_without_the_library_is_stopped_and_then_nothing_is_wrong(
    stage: Stage, auditor: Auditor
) -> None:
    with holders(stage.node) as (pid,):
        stage.put_inside(pid)
        assert await ticks(auditor, 2) == [set(), {"ProcessWithoutLibrary"}]
        while auditor.findings:
            await ticks(auditor, 1)
    assert stage.stopped == [ID]


async def test_a_stranger_is_told_of_and_left_alone(stage: Stage, auditor: Auditor) -> None:
    with holders(stage.node) as (pid,):
        stage.put_inside(pid)
        stage.put_outside(pid)
        assert await ticks(auditor, 4) == [set(), set(), {"ProcessOfNobody"}, {"ProcessOfNobody"}]
    assert stage.stopped == []


async def test_while_the_driver_dies_hangs_and_comes_back_nobody_is_accused(
    stage: Stage, auditor: Auditor, nvml: NvmlChild
) -> None:
    with holders(stage.node, library=stage.library) as (pid,):
        stage.put_inside(pid)
        stage.lend(pid, 1024)
        assert await ticks(auditor, 2) == [set()] * 2
        assert nvml.pid is not None
        os.kill(nvml.pid, signal.SIGKILL)
        assert await ticks(auditor, 2) == [set()] * 2
        stage.node.control("nvml answer 999")
        assert await ticks(auditor, 3) == [set()] * 3
        assert auditor.uses == {CARD: None}
        stage.node.control("nvml answer 0")
        while auditor.uses[CARD] is None:
            await auditor.tick()
            await asyncio.sleep(0.05)
        assert auditor.findings == ()
    assert stage.stopped == []


async def test_processes_that_come_and_go_all_the_time_are_not_accused(stage: Stage, auditor: Auditor) -> None:
    for _ in range(8):
        with holders(stage.node, count=3, library=stage.library) as pids:
            stage.put_inside(*pids)
            for pid in pids:
                stage.lend(pid, 1024)
            os.kill(pids[-1], signal.SIGKILL)
            assert await ticks(auditor, 2) == [set()] * 2
    assert stage.stopped == []
