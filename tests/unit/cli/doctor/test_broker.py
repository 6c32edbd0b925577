"""Whether limits would hold, judged by the broker's liveness file and answer, and the files mounted into containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_cli.doctor.broker import OBJECTS, broker, library
from partage_cli.doctor.findings import Severity
from partage_isolation.store import folders
from partage_isolation.wire.messages import Rejection
from support.broker import FakeBroker, container, held, pod, told
from unit.cli.doctor.made import Made, only

ALIVE = "run/partage/broker/alive"


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


@pytest.fixture
def installed(made: Made) -> Path:
    """The library's folder."""
    for name in OBJECTS:
        made.write(f"usr/local/lib/partage/0.1.0/{name}").chmod(0o755)
    return made.root / "usr/local/lib/partage/0.1.0"


def test_a_node_without_a_broker_gives_whole_cards(made: Made) -> None:
    assert only(broker(made.node)).status is Severity.WARNING
    finding = only(broker(made.seen(ALIVE, 60).node))
    assert (finding.status, finding.found) == (
        Severity.WARNING,
        "it was last seen 1m ago: this node can give whole cards alone",
    )


def test_a_broker_that_answers_is_well(made: Made) -> None:
    with FakeBroker(made.root, told(container(pod(), held()))):
        finding = only(broker(made.seen(ALIVE, 1).node))
    assert (finding.status, finding.found) == (Severity.OK, "version 0.1.0 serves 1 container")


def test_a_sign_of_life_without_an_answer_is_wrong(made: Made) -> None:
    finding = only(broker(made.seen(ALIVE, 1).node))
    assert finding.status is Severity.WRONG
    assert finding.found.startswith("seen 1s ago, and gives no answer: no broker answers at ")
    with FakeBroker(made.root, Rejection(why="not now")):
        assert only(broker(made.node)).found == "seen 1s ago, and gives no answer: not now"


def test_what_the_audit_found_is_wrong(made: Made) -> None:
    found = "team-a/train-0: process 4711 does not have the library"
    with FakeBroker(made.root, told(findings=(found,))):
        _, finding = broker(made.seen(ALIVE, 1).node)
    assert (finding.status, finding.found) == (Severity.WRONG, found)


def test_a_library_that_is_all_there_is_well(made: Made, installed: Path) -> None:
    with FakeBroker(made.root, told(library=str(installed))):
        assert only(library(made.node)).status is Severity.OK


def test_a_library_that_is_not_there_or_that_others_cannot_read_is_wrong(made: Made, installed: Path) -> None:
    """Programs of other users would start without it, and without limits."""
    with FakeBroker(made.root, told(library=str(installed))):
        installed.chmod(0o700)
        assert "has mode 0700, which keeps other users out" in only(library(made.node)).found
        installed.chmod(0o755)
        (installed / OBJECTS[1]).unlink()
        finding = only(library(made.node))
    assert (finding.status, f"{OBJECTS[1]}: is not there" in finding.found) == (Severity.WRONG, True)


def test_a_library_that_is_not_installed_is_wrong(made: Made) -> None:
    with FakeBroker(made.root, told(library="")):
        finding = only(library(made.node))
    assert finding.status is Severity.WRONG
    assert "--install-library" in finding.advice


def test_without_a_broker_nobody_knows_where_the_library_is(made: Made) -> None:
    assert only(library(made.node)).status is Severity.UNKNOWN


def test_it_looks_for_what_containers_are_told_to_load() -> None:
    assert OBJECTS == folders.OBJECTS
