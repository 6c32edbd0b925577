"""Findings as files: whole, growing, and gone some time after they came right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partage_base.findings import FINDINGS_FOLDER, MAX_BYTES, Findings, NoFindings, Problem, decode_findings
from partage_isolation.audit.board import KEPT_S, Board
from partage_isolation.audit.findings import CoveredMounts, ProcessOfNobody, ProcessWithoutLibrary
from partage_plugins.vocabulary.names import CardId
from unit.isolation.watching.scenes import CARD, KEY, POD, container

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
    Board(tmp_path).show([COVERED, NOBODY], CONTAINERS, stops=True)
    found = files(tmp_path)
    assert found[f"{KEY}.json"] == Findings(
        subject=KEY,
        pod=POD,
        container=CONTAINERS[KEY].container,
        found=(Problem("CoveredMounts", COVERED.sentence, True),),
    )
    assert found[f"{CARD}.json"].found == (Problem("ProcessOfNobody", NOBODY.sentence, stops=False),)


def test_what_is_only_reported_says_that_nobody_is_stopped(tmp_path: Path) -> None:
    Board(tmp_path).show([COVERED], CONTAINERS, stops=False)
    assert not files(tmp_path)[f"{KEY}.json"].found[0].stops


def test_a_file_grows_and_says_each_thing_once(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.show([COVERED], CONTAINERS, stops=True)
    board.show([ProcessWithoutLibrary(KEY, CARD, pid) for pid in (7, 8)], {}, stops=True)
    found = files(tmp_path)[f"{KEY}.json"]
    assert [each.kind for each in found.found] == ["CoveredMounts", "ProcessWithoutLibrary"]
    assert found.pod == POD, "also once the books have forgotten it"


def test_a_file_goes_some_time_after_nothing_is_wrong_any_more(tmp_path: Path) -> None:
    clock = Clock()
    board = Board(tmp_path, clock=clock)
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
    Board(tmp_path).show([COVERED], CONTAINERS, stops=True)
    board = Board(tmp_path, clock=clock)
    board.show([], {}, stops=True)
    assert files(tmp_path)
    clock.now_s += KEPT_S + 1
    board.show([], {}, stops=True)
    assert not files(tmp_path)


def test_a_card_with_a_strange_name_has_a_file_in_the_folder(tmp_path: Path) -> None:
    Board(tmp_path).show([ProcessOfNobody(CardId("MIG-GPU/../x:1"), 7)], {}, stops=True)
    assert list(files(tmp_path)) == ["MIG-GPU_.._x_1.json"]


def test_a_file_is_not_written_again_while_it_says_the_same(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.show([COVERED], CONTAINERS, stops=True)
    path = tmp_path / FINDINGS_FOLDER / f"{KEY}.json"
    before = path.stat().st_ino
    board.show([COVERED], CONTAINERS, stops=True)
    assert path.stat().st_ino == before


def test_a_folder_that_cannot_be_written_costs_the_file_alone(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("in the way")
    Board(tmp_path).show([COVERED], CONTAINERS, stops=True)


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
