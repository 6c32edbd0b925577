"""Which container a process is of: by its control group, as soon as the runtime's id is known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from partage_isolation.audit.metrics import Counters
from partage_isolation.ledger.budget import Budget, Process
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.names import own_budget
from partage_isolation.wire import served as module
from partage_isolation.wire.connection import Connection, Served, Session
from partage_isolation.wire.sampler import Sampler
from partage_isolation.wire.served import Registry
from unit.isolation.ledger.keeping import CARD, KEY, MIB, OTHER, Kept, book

MINE, THEIRS = "1a" * 32, "2b" * 32
_GROUPS = {10: f"cri-containerd-{MINE}.scope", 11: f"cri-containerd-{THEIRS}.scope", 12: "user.slice"}


@pytest.fixture(autouse=True)
def groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cgroup_components", lambda pid: frozenset([_GROUPS[pid]]))


@pytest.fixture
def known() -> tuple[Registry, Session]:
    """One container with the process 11, which is connected."""
    budget = Budget(own_budget(KEY), (book(MIB),))
    session = Session(Process(KEY, 11, 1, b""), calls=cast("Connection", SimpleNamespace()))
    served = cast(
        "Served",
        SimpleNamespace(
            budget=budget, spec=SimpleNamespace(key=KEY, is_claim=False, by_hook=False), sessions={(11, 1): session}
        ),
    )
    registry = Registry()
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
    ledger, registry = Ledger(Kept()), Registry()
    nobody, counters = cast("Any", None), Counters()
    sampler = Sampler(ledger, nobody, hints=nobody, counters=counters, registry=registry, learned=nobody)
    ledger.put(KEY, (book(1024 * MIB),))
    registry.runtime_has({KEY: {MINE}})
    assert sampler.charge((10, 5), CARD, 300 * MIB)
    assert not sampler.charge((12, 5), CARD, 300 * MIB)
    assert ledger.containers[KEY].charged(0) == 300 * MIB


@pytest.fixture
def claimed(known: tuple[Registry, Session]) -> tuple[Registry, Session]:
    """The same, of a claim."""
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
