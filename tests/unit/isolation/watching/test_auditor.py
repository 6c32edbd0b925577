"""The audit as it runs: the order of its queries, which containers are stopped, and what is reported."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from partage_base.cri import CriError, PeerAway
from partage_base.daemon.metrics import Metrics
from partage_base.findings import FINDINGS_FOLDER
from partage_isolation.audit.auditor import AuditFigures, Auditor
from partage_isolation.audit.engagement import Engagement, Scan, Wanted
from partage_isolation.audit.facts import CardUse, ContainerFacts
from partage_isolation.audit.listing import Listing, RuntimeContainer
from partage_isolation.audit.mounts import InstalledFiles
from partage_isolation.audit.report_files import ReportFiles
from partage_isolation.audit.suspicions import Rules, Sight
from partage_plugins.api.names import CardId, ContainerKey
from unit.isolation.watching.scenes import CARD, ID, KEY, MIB, container, row, sight


class World(Engagement):
    """Everything that an audit queries, and what it did to it."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(InstalledFiles(tmp_path / "library", tmp_path))
        self.root = tmp_path
        self.metrics = Metrics("broker")
        self.books: Sequence[ContainerFacts] = (container(row(7, MIB)),)
        self.uses: Mapping[int, int] | None = {7: MIB}
        self.listing: Listing | None = Listing([RuntimeContainer(ID, KEY, 70, running=True)])
        self.sights: Mapping[int, Sight] = {7: sight(7)}
        self.first = sight(70)
        self.fault: CriError | OSError | None = None
        self.stops_hang = False
        self.look_s = 60.0
        self.unblocked = threading.Event()
        self.unblocked.set()
        self.log: list[str] = []
        self.stopped: list[str] = []
        self.forgotten: list[ContainerKey] = []

    def facts(self) -> Sequence[ContainerFacts]:
        self.log.append("books")
        return self.books

    def forget(self, key: ContainerKey) -> None:
        self.forgotten.append(key)
        self.books = ()

    async def use(self, card: CardId) -> CardUse | None:
        self.log.append("card")
        return None if self.uses is None else CardUse(card, 1, self.uses)

    async def containers(self, *, with_claims: bool = False) -> Listing | None:
        assert not with_claims
        self.log.append("runtime")
        return self.listing

    async def stop(self, container_id: str, *, grace_s: int) -> None:
        assert 0 <= grace_s <= 2
        self.stopped.append(container_id)
        if self.stops_hang:
            await asyncio.sleep(3600)
        if isinstance(self.fault, CriError):
            raise self.fault

    def look(self, wanted: Wanted) -> Scan:
        self.log.append("processes")
        if isinstance(self.fault, OSError):
            raise self.fault
        self.unblocked.wait()
        assert wanted.prepared == {one.key for one in self.books}
        return Scan(self.sights, {ID: self.first}, frozenset())

    def auditor(self, **changed: object) -> Auditor:
        auditor = Auditor(
            books=self,
            nvml=self,
            runtime=self,
            engagement=self,
            board=ReportFiles(self.root),
            figures=AuditFigures(self.metrics),
            rules=Rules(apart_s=0.0),
            look_s=self.look_s,
            on_violation="report" if changed.get("report") else "stop",
        )
        assert auditor.findings == ()
        return auditor

    @property
    def page(self) -> str:
        return self.metrics.page().decode()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def ticked(auditor: Auditor, times: int = 1) -> None:
    """Run so many rounds, and end the auditor."""
    for _ in range(times):
        await auditor.tick()
        await asyncio.sleep(0)  # stops are requested meanwhile
    await auditor.close()


def covered(world: World) -> None:
    world.first = replace(world.first, wrong_places=("/run/partage",))


async def test_books_come_before_and_after_cards_and_processes_last(world: World) -> None:
    auditor = world.auditor()
    await ticked(auditor)
    assert world.log[0] == "books"
    assert sorted(world.log[1:3]) == ["card", "runtime"]
    assert world.log[3:] == ["books", "processes"]
    assert auditor.uses == {CARD: CardUse(CARD, 1, {7: MIB})}


async def test_an_honest_container_hears_nothing(world: World) -> None:
    auditor = world.auditor()
    await ticked(auditor, times=5)
    assert (world.stopped, world.forgotten, auditor.findings) == ([], [], ())
    assert not (world.root / FINDINGS_FOLDER).exists()


async def test_a_container_whose_mounts_are_covered_is_stopped_told_and_counted(world: World) -> None:
    auditor = world.auditor()
    covered(world)
    await ticked(auditor, times=4)
    assert world.stopped == [ID], "once, while the runtime says that it was done"
    assert [one.kind for one in auditor.findings] == ["CoveredMounts"]
    assert (world.root / FINDINGS_FOLDER / f"{KEY}.json").exists()
    assert 'partage_broker_findings_total{kind="CoveredMounts"} 1' in world.page
    assert 'partage_broker_findings_standing{kind="CoveredMounts"} 1' in world.page
    assert 'partage_broker_stops_total{outcome="done"} 1' in world.page


async def test_who_only_reports_stops_nobody(world: World) -> None:
    auditor = world.auditor(report=True)
    covered(world)
    await ticked(auditor, times=4)
    assert world.stopped == []
    assert auditor.findings


async def test_a_stop_that_fails_is_repeated_and_counted(world: World) -> None:
    auditor = world.auditor()
    covered(world)
    world.fault = PeerAway("s", "gone")
    await ticked(auditor, times=4)
    assert len(world.stopped) >= 2
    assert 'outcome="failed"' in world.page


async def test_a_stop_that_takes_its_time_holds_up_no_audit(world: World) -> None:
    auditor = world.auditor()
    covered(world)
    world.stops_hang = True
    await ticked(auditor, times=5)
    assert world.stopped == [ID]


async def test_a_container_that_has_ended_is_not_stopped(world: World) -> None:
    auditor = world.auditor()
    covered(world)
    world.listing = Listing([RuntimeContainer(ID, KEY, None, running=False)])
    await ticked(auditor, times=4)
    assert world.stopped == []


async def test_a_container_that_is_gone_is_forgotten(world: World) -> None:
    auditor = world.auditor()
    world.books, world.uses, world.sights = (container(),), {}, {}
    await auditor.tick()
    world.listing = Listing()
    await auditor.tick()
    assert world.forgotten == []
    await auditor.tick()
    await auditor.tick()
    await auditor.close()
    assert world.forgotten == [KEY]


async def test_whoever_does_not_answer_makes_a_round_blind_and_no_more(world: World) -> None:
    auditor = world.auditor()
    world.uses, world.listing, world.fault = None, None, OSError("no mounts")
    for _ in range(5):
        await auditor.tick()
    assert "partage_broker_blind_cards 1" in world.page
    world.uses, world.listing, world.fault = {7: MIB}, Listing([RuntimeContainer(ID, KEY, 70, running=True)]), None
    await auditor.tick()
    assert "partage_broker_blind_cards 0" in world.page
    await auditor.close()
    assert (world.stopped, world.forgotten, auditor.findings) == ([], [], ())


async def test_what_comes_right_stands_no_more(world: World) -> None:
    auditor = world.auditor(report=True)
    right = world.first
    covered(world)
    await auditor.tick()
    await auditor.tick()
    assert auditor.findings
    world.first = right
    await auditor.tick()
    await auditor.close()
    assert auditor.findings == ()
    assert 'partage_broker_findings_standing{kind="CoveredMounts"} 0' in world.page


async def test_a_look_that_never_ends_holds_up_neither_limits_nor_stops(world: World) -> None:
    world.look_s = 0.01
    auditor = world.auditor()
    world.unblocked.clear()
    world.books, world.uses = (container(row(7, MIB, overhead=2000 * MIB)),), {7: 2000 * MIB}
    for _ in range(12):
        await auditor.tick()
    assert world.log.count("processes") == 8, "so many threads wait, and no more"
    assert [one.kind for one in auditor.findings] == ["BytesBeyondLimit"]
    world.unblocked.set()
    while world.log.count("processes") == 8:
        await auditor.tick()
    await auditor.close()
    assert world.stopped == [ID]
