"""Which process is the peer, and to which container it belongs."""

from __future__ import annotations

import os
import signal
import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.peers import (
    NoProcess,
    components_of,
    has_ended,
    is_within,
    namespace_of,
    peer_named,
    peer_of,
    pids_of,
    start_of,
)
from partage_isolation.ledger.budget import Budget, Process
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.metrics import Counters
from partage_isolation.names import own_budget
from partage_isolation.store.row_bounds import RowBounds
from partage_isolation.wire import served as module
from partage_isolation.wire.answers import pid_for
from partage_isolation.wire.connection import Connection, Served, Session
from partage_isolation.wire.sampler import Sampler
from partage_isolation.wire.served import Registry
from partage_plugins.api.names import ContainerKey
from support.broker import pod
from unit.isolation.ledger.keeping import CARD, KEY, MIB, OTHER, Kept, book

ID = "4f" * 32


def test_the_other_end_of_a_connection_is_known() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        peer = peer_of(ours)
    assert (peer.pid, peer.start) == (os.getpid(), start_of(os.getpid()))
    assert not has_ended(peer.pidfd)
    os.close(peer.pidfd)


def test_a_process_that_has_ended_is_nobody() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    assert start_of(pid) is None
    with pytest.raises(NoProcess):
        peer_named(pid)


def test_its_end_is_heard_of() -> None:
    pid = os.fork()
    if pid == 0:
        signal.pause()
    peer = peer_named(pid)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert has_ended(peer.pidfd)
    os.close(peer.pidfd)


@pytest.mark.parametrize(
    "text",
    [
        f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope\n",
        f"12:memory:/kubepods/besteffort/pod1/{ID}\n11:cpu,cpuacct:/\n",
        f"0::/system.slice/crio-{ID}.scope\n",
        f"1:name=systemd:/docker/{ID}/init\n0::/\n",
    ],
)
def test_the_runtime_s_id_is_found_in_control_groups_of_either_version(text: str) -> None:
    assert is_within(components_of(text), ID)
    assert not is_within(components_of(text), "5a" * 32)


@pytest.mark.parametrize("near", [ID[:-1], ID + "0", ID[1:], "4f"])
def test_a_part_of_an_id_is_not_the_id(near: str) -> None:
    assert not is_within(components_of(f"0::/kubepods/cri-containerd-{ID}.scope"), near)


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert not is_within(components_of(text), ID)


def session_of(*pids: int, namespace: int) -> Session:
    return Session(Process(ContainerKey("0" * 32), pids[0], 1, b""), pids=pids, namespace=namespace)


def test_pids_are_those_of_the_asker_s_namespace() -> None:
    inside, sibling = session_of(900, 7, namespace=2), session_of(901, 8, namespace=2)
    deeper, outside = session_of(902, 9, 1, namespace=3), session_of(903, namespace=1)
    other = session_of(904, 7, namespace=4)
    assert pid_for(inside, sibling) == 8
    assert pid_for(inside, deeper) == 9
    assert pid_for(outside, deeper) == 902
    assert pid_for(inside, outside) is None
    assert pid_for(inside, other) is None
    assert pid_for(deeper, inside) is None


def test_our_own_pids_and_namespace_are_read() -> None:
    assert pids_of(os.getpid())[0] == os.getpid()
    assert namespace_of(os.getpid()) == os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    assert (pids_of(2**22 + 1), namespace_of(2**22 + 1)) == ((), 0)


# ---- The peer's container --------------------------------------------------------------------------------------------


MINE, THEIRS = "1a" * 32, "2b" * 32
_GROUPS = {10: f"cri-containerd-{MINE}.scope", 11: f"cri-containerd-{THEIRS}.scope", 12: "user.slice"}


@pytest.fixture(autouse=True)
def groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cgroup_components", lambda pid: frozenset([_GROUPS[pid]]))


@pytest.fixture
def known() -> tuple[Registry, Session]:
    """One container with process 11, which is connected."""
    budget = Budget(own_budget(KEY), (book(MIB),))
    session = Session(Process(KEY, 11, 1, b""), calls=cast("Connection", SimpleNamespace()))
    served = cast(
        "Served",
        SimpleNamespace(
            budget=budget,
            spec=SimpleNamespace(key=KEY, pod=pod(), is_claim=False, by_hook=False),
            sessions={(11, 1): session},
        ),
    )
    registry = Registry(RowBounds())
    registry.enter(KEY, served)
    return registry, session


def test_before_the_runtime_s_id_is_known_everybody_may_be_of_the_container(known: tuple[Registry, Session]) -> None:
    registry, _ = known
    assert all(registry.may_be(registry.served[KEY], pid) for pid in _GROUPS)
    assert registry.container_of(10) is None


def test_afterwards_only_processes_of_its_control_group(known: tuple[Registry, Session]) -> None:
    registry, _ = known
    registry.runtime_has({KEY: {MINE}, OTHER: {THEIRS}})
    assert [registry.may_be(registry.served[KEY], pid) for pid in _GROUPS] == [True, False, False]
    assert [registry.container_of(pid) for pid in _GROUPS] == [KEY, OTHER, None]


def test_who_came_before_is_checked_then_and_once(known: tuple[Registry, Session]) -> None:
    registry, session = known
    assert [found for _, found in registry.runtime_has({KEY: {MINE}})] == [session]
    assert not registry.runtime_has({KEY: {MINE}})
    assert not registry.runtime_has({KEY: {THEIRS}})


def test_a_process_that_a_card_shows_and_that_never_came_is_charged_to_its_container() -> None:
    ledger, registry = Ledger(Kept()), Registry(RowBounds())
    nobody, counters = cast("Any", None), Counters()
    sampler = Sampler(ledger, nobody, hints=nobody, counters=counters, registry=registry, learned=nobody)
    ledger.put(KEY, (book(1024 * MIB),))
    registry.runtime_has({KEY: {MINE}})
    assert sampler.charge((10, 5), CARD, 300 * MIB)
    assert not sampler.charge((12, 5), CARD, 300 * MIB)
    assert ledger.containers[KEY].charged(0) == 300 * MIB


@pytest.fixture
def claimed(known: tuple[Registry, Session]) -> tuple[Registry, Session]:
    """The same for a claim."""
    registry, session = known
    registry.served[KEY].spec.is_claim = True  # type: ignore[misc]  # it stands for one
    return registry, session


def test_a_claim_has_the_processes_of_all_its_containers(claimed: tuple[Registry, Session]) -> None:
    registry, _ = claimed
    registry.runtime_has({KEY: {MINE, THEIRS}})
    assert [registry.may_be(registry.served[KEY], pid) for pid in (10, 11)] == [True, True]
    assert registry.container_of(11) == KEY


def test_a_process_of_a_claim_s_new_container_is_let_go_only_by_the_second_list(
    claimed: tuple[Registry, Session],
) -> None:
    registry, session = claimed
    assert registry.runtime_has({KEY: {MINE}}) == []
    assert registry.runtime_has({KEY: {MINE, THEIRS}}) == []
    assert registry.runtime_has({KEY: {MINE}}) == []
    assert [found for _, found in registry.runtime_has({KEY: {MINE}})] == [session]


def test_a_process_of_another_container_is_none_of_the_claim_s(claimed: tuple[Registry, Session]) -> None:
    registry, _ = claimed
    registry.runtime_has({KEY: {MINE}, OTHER: {THEIRS}})
    assert [registry.may_be(registry.served[KEY], pid) for pid in _GROUPS] == [True, False, True]
