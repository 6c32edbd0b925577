"""Whether crishim and advertiser work, judged by socket, liveness files and lock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from partage_base.condition import Condition, Fault, encode_condition
from partage_cli.doctor import daemons
from partage_cli.doctor.findings import Finding, Severity
from partage_cli.doctor.local_node import Unseen
from partage_cli.doctor.runtimes import Runtime, runtime_at
from partage_plugins.api.places import ADVERTISER_LOCK, CRISHIM_CONDITION
from support.fake_runtime import FakeRuntime
from support.sockets import listening
from support.splice.sockets import RuntimeSocket
from unit.cli.doctor.made import Made, only

SPOKE = "run/partage/crishim/kubelet-spoke"


@pytest.fixture
def made() -> Iterator[Made]:
    with TemporaryDirectory() as folder:  # a socket's path must be short
        yield Made(Path(folder))


def test_a_socket_that_is_not_there_and_one_that_nobody_listens_on_are_wrong(made: Made) -> None:
    assert only(daemons.crishim(made.node)).found == "does not answer: is not there"
    listening(made.root / "run/partage/crishim.sock").close()
    finding = only(daemons.crishim(made.node))
    assert (finding.status, finding.found) == (Severity.WRONG, "does not answer: Version: Connection refused")


@pytest.mark.slow
def test_one_that_listens_and_never_answers_is_waited_for_no_longer_than_its_deadline(made: Made) -> None:
    with listening(made.root / "run/partage/crishim.sock"):
        finding = only(daemons.crishim(made.node))
    assert finding.found == "does not answer: no answer to Version within 2 s"


async def test_one_that_answers_says_for_whom(made: Made) -> None:
    runtime = FakeRuntime()
    runtime.version = "containerd", "2.3.4\x1b"
    async with RuntimeSocket(made.root / "peer.sock", runtime) as peer:
        assert await asyncio.to_thread(runtime_at, peer.path) == Runtime("containerd", "2.3.4?")


def condition(made: Made, *faults: Fault) -> Finding:
    made.write(CRISHIM_CONDITION, encode_condition(Condition(faults=faults)).decode())
    return only(daemons.crishim_condition(made.node))


def test_what_crishim_finds_wrong_with_itself_is_said_in_its_words(made: Made) -> None:
    assert condition(made).status is Severity.OK
    bad = condition(made, Fault("settings", "its settings cannot be read: no such key"))
    assert (bad.status, bad.found) == (Severity.WRONG, "its settings cannot be read: no such key")
    assert bad.advice == "mend it; until then crishim refuses containers with an allocation and serves all others"
    assert condition(made, Fault("metrics", "the port is taken", refuses=False)).status is Severity.WARNING


def test_a_crishim_that_does_not_say_how_it_is_is_wrong(made: Made) -> None:
    finding = only(daemons.crishim_condition(made.node))
    assert finding.status is Severity.WRONG
    assert finding.found.startswith("crishim has not said whether it honours allocations")
    condition(made)
    old = only(daemons.crishim_condition(made.seen(CRISHIM_CONDITION, 300).node))
    assert old.found.startswith("crishim has not said for 5m whether it honours allocations")


def test_kubelet_that_never_spoke_or_fell_silent_is_wrong(made: Made) -> None:
    assert only(daemons.kubelet_speaks(made.node)).status is Severity.WRONG
    finding = only(daemons.kubelet_speaks(made.seen(SPOKE, 300).node))
    assert (finding.status, finding.found.startswith("kubelet last spoke to crishim 5m ago")) == (Severity.WRONG, True)
    assert only(daemons.kubelet_speaks(made.seen(SPOKE, 4).node)).status is Severity.OK


def test_a_sign_from_a_time_to_come_is_none(made: Made) -> None:
    assert only(daemons.kubelet_speaks(made.seen(SPOKE, -60).node)).status is Severity.WRONG


def test_the_advertiser_runs_while_it_holds_its_lock(made: Made) -> None:
    assert only(daemons.advertiser(made.node)).status is Severity.WRONG
    with made.advertiser():
        assert only(daemons.advertiser(made.node)).status is Severity.OK
    assert only(daemons.advertiser(made.node)).status is Severity.WRONG


def test_a_lock_that_is_a_link_is_not_followed(made: Made) -> None:
    lock = made.root / ADVERTISER_LOCK
    lock.parent.mkdir(parents=True)
    lock.symlink_to("/etc/passwd")
    assert isinstance(daemons.is_held(lock), Unseen)
