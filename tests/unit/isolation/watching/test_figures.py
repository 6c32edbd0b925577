"""What people, files and Prometheus get about containers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partage_base.daemon.exposition import Family
from partage_base.daemon.metrics import Metrics
from partage_base.findings import FINDINGS_FOLDER, MAX_BYTES, Findings, NoFindings, Problem, decode_findings
from partage_isolation.audit.facts import ContainerFacts
from partage_isolation.audit.findings import CoveredMounts, ProcessOfNobody, ProcessWithoutLibrary
from partage_isolation.audit.report_files import KEPT_S, ReportFiles
from partage_isolation.ledger.samples import ContextSizes
from partage_isolation.metrics import BrokerFigures, Counters
from partage_isolation.wire.report import told
from partage_isolation.wire.timeslices import Terms
from partage_plugins.api.names import BudgetName, CardId, ContainerKey, ContainerName
from unit.isolation.watching.scenes import CARD, KEY, MIB, OTHER_KEY, POD, container, row


def facts_of(name: str, pid: int, budget: str | None) -> ContainerFacts:
    key = ContainerKey(name * 32)
    plain = container(row(pid, 100 * MIB, key=key), key=key, budget=None if budget is None else BudgetName(budget))
    return ContainerFacts(
        key=key,
        pod=plain.pod,
        container=ContainerName(name),
        gen=1,
        cards=plain.cards,
        processes=plain.processes,
        budget_name=plain.budget_name,
    )


def values(name: str, *containers: ContainerFacts) -> dict[str, float]:
    """The values of that family, by container."""
    return {sample.labels["container"]: sample.value for sample in family(name, *containers).samples}


def unshown(*containers: ContainerFacts) -> float:
    (sample,) = family("partage_broker_unshown_containers", *containers).samples
    return sample.value


def family(name: str, *containers: ContainerFacts) -> Family:
    metrics = Metrics("broker")
    sizes = ContextSizes()
    BrokerFigures(
        metrics,
        node="n1",
        counters=Counters(),
        facts=lambda: containers,
        sizes=sizes,
        free_rows=lambda: 0,
        refused_rows=lambda: 0,
    )
    (found,) = (each for each in metrics.families() if each.name == name)
    return found


def test_what_a_budget_has_is_said_once_and_what_programs_use_by_container() -> None:
    containers = facts_of("a", 1, "pod"), facts_of("b", 2, "pod"), facts_of("c", 3, None)
    assert values("partage_container_memory_limit_bytes", *containers) == {
        "budget/pod": 1024 * MIB,
        "c": 1024 * MIB,
    }
    assert values("partage_container_memory_used_bytes", *containers) == dict.fromkeys("abc", 100 * MIB)


def test_of_too_many_containers_some_are_shown_and_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partage_isolation.metrics.MOST_CONTAINERS", 2)
    containers = [facts_of(name, number, None) for number, name in enumerate("abc")]
    assert len(values("partage_container_memory_limit_bytes", *containers)) == 2
    assert unshown(*containers) == 1


# ---- The driver's own limits -----------------------------------------------------------------------------------------


def holds(key: ContainerKey, card: CardId) -> int | None:
    return 100 * MIB if (key, card) == (KEY, CARD) else None


def limits(*containers: ContainerFacts) -> list[int | None]:
    answer = told(
        containers, version="1", library="", cards=(), findings=(), terms=Terms("virtual-time"), driver_holds=holds
    )
    return [each.cards[0].driver_limit_bytes for each in answer.containers]


def test_the_limit_is_that_of_the_container_whose_group_has_it() -> None:
    assert limits(container(), container(key=OTHER_KEY)) == [100 * MIB, None]


def test_of_a_budget_that_several_use_the_driver_holds_none() -> None:
    budget = BudgetName("pod")
    assert limits(container(budget=budget), container(key=OTHER_KEY, budget=budget)) == [None, None]
    assert limits(container(budget=budget)) == [100 * MIB]


# ---- Files of findings -----------------------------------------------------------------------------------------------


COVERED, NOBODY = CoveredMounts(KEY, "/run/partage"), ProcessOfNobody(CARD, 7)
CONTAINERS = {str(KEY): container()}


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def files(root: Path) -> dict[str, Findings]:
    folder = root / FINDINGS_FOLDER
    return {path.name: decode_findings(path.read_bytes()) for path in folder.glob("*")} if folder.exists() else {}


def test_a_finding_is_written_with_whose_it_is(tmp_path: Path) -> None:
    ReportFiles(tmp_path).show([COVERED, NOBODY], CONTAINERS, stops=True)
    found = files(tmp_path)
    assert found[f"{KEY}.json"] == Findings(
        subject=KEY,
        pod=POD,
        container=CONTAINERS[KEY].container,
        found=(Problem("CoveredMounts", COVERED.sentence, True),),
    )
    assert found[f"{CARD}.json"].found == (Problem("ProcessOfNobody", NOBODY.sentence, stops=False),)


def test_what_is_only_reported_says_that_nobody_is_stopped(tmp_path: Path) -> None:
    ReportFiles(tmp_path).show([COVERED], CONTAINERS, stops=False)
    assert not files(tmp_path)[f"{KEY}.json"].found[0].stops


def test_a_file_grows_and_says_each_thing_once(tmp_path: Path) -> None:
    board = ReportFiles(tmp_path)
    board.show([COVERED], CONTAINERS, stops=True)
    board.show([ProcessWithoutLibrary(KEY, CARD, pid) for pid in (7, 8)], {}, stops=True)
    found = files(tmp_path)[f"{KEY}.json"]
    assert [each.kind for each in found.found] == ["CoveredMounts", "ProcessWithoutLibrary"]
    assert found.pod == POD, "also once the books have forgotten it"


def test_a_file_goes_some_time_after_nothing_is_wrong_any_more(tmp_path: Path) -> None:
    clock = Clock()
    board = ReportFiles(tmp_path, clock=clock)
    board.show([COVERED], CONTAINERS, stops=True)
    clock.now_s += KEPT_S - 1
    board.show([COVERED], CONTAINERS, stops=True)
    clock.now_s += KEPT_S - 1
    board.show([], {}, stops=True)
    assert files(tmp_path)
    clock.now_s += 2
    board.show([], {}, stops=True)
    assert not files(tmp_path)


def test_what_another_broker_left_goes_too(tmp_path: Path) -> None:
    clock = Clock()
    ReportFiles(tmp_path).show([COVERED], CONTAINERS, stops=True)
    board = ReportFiles(tmp_path, clock=clock)
    board.show([], {}, stops=True)
    assert files(tmp_path)
    clock.now_s += KEPT_S + 1
    board.show([], {}, stops=True)
    assert not files(tmp_path)


def test_a_card_with_a_strange_name_has_a_file_in_the_folder(tmp_path: Path) -> None:
    ReportFiles(tmp_path).show([ProcessOfNobody(CardId("MIG-GPU/../x:1"), 7)], {}, stops=True)
    assert list(files(tmp_path)) == ["MIG-GPU_.._x_1.json"]


def test_a_file_is_not_written_again_while_it_says_the_same(tmp_path: Path) -> None:
    board = ReportFiles(tmp_path)
    board.show([COVERED], CONTAINERS, stops=True)
    path = tmp_path / FINDINGS_FOLDER / f"{KEY}.json"
    before = path.stat().st_ino
    board.show([COVERED], CONTAINERS, stops=True)
    assert path.stat().st_ino == before


def test_a_folder_that_cannot_be_written_costs_the_file_alone(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("in the way")
    ReportFiles(tmp_path).show([COVERED], CONTAINERS, stops=True)


@pytest.mark.parametrize(
    "raw",
    [b"", b"[]", b"{}", b'{"subject":1}', b'{"subject":"x","found":[["bad kind","s",false]]}', b"[" * 100_000, b"\xff"],
)
def test_what_is_no_file_of_findings_is_refused(raw: bytes) -> None:
    with pytest.raises(NoFindings):
        decode_findings(raw)


def test_a_file_without_end_is_refused() -> None:
    raw = json.dumps({"subject": "x" * MAX_BYTES}).encode()
    with pytest.raises(NoFindings, match="allowed"):
        decode_findings(raw)
