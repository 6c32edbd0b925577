"""Reports of processes on time slices reach the arbiter as theirs; its decisions reach lines and members."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.ledger.budget import CardSpec
from partage_isolation.names import budget_key
from partage_isolation.store.specs import Spec
from partage_isolation.timeslices.arbiter import Silent
from partage_isolation.timeslices.line import LineState, Notify, Write, pack
from partage_isolation.wire.connection import LEASE_COSTS
from partage_isolation.wire.packets import What, line_hint
from partage_plugins.api.names import BudgetName, ContainerKey, ContainerName
from partage_plugins.api.pods import Gang
from support.broker import pod
from unit.isolation.timeslices.scene import CARDS, KEY, OTHER, OTHERS_OWN, OWN, FakeConnection, Scene


def fake(connection: object) -> FakeConnection:
    return cast("FakeConnection", connection)


@pytest.mark.parametrize("what", [What.WANT, What.DRAINED, What.IDLE])
def test_what_who_has_not_joined_says_is_counted_as_wrong_and_not_answered(what: What) -> None:
    scene = Scene()
    session = scene.session()
    scene.say(session, What.JOIN, 1)
    scene.take_said()
    assert scene.say(session, what, 0, epoch=7) is None
    assert scene.say(scene.session(pid=2), what, 1, epoch=7) is None
    assert scene.counters.wrong == 2
    assert not scene.take_said()


def test_packets_say_their_epoch_and_not_who_sends_them() -> None:
    scene = Scene()
    one, other = scene.session(), scene.session(OTHER)
    for session in (one, other):
        scene.say(session, What.JOIN)
    members = [said[3] for said in scene.take_said()]
    scene.say(one, What.WANT, epoch=3)
    scene.say(other, What.DRAINED, epoch=4, at=5, is_blocked=9)
    scene.say(one, What.IDLE, epoch=6)
    want, drained, idle = scene.take_said()
    assert want[:5] == ("wanted", KEY, CARDS[0], members[0], 3)
    assert drained[:7] == ("drained", OTHER, CARDS[0], members[1], 4, 5, True)
    assert idle[:5] == ("idle", KEY, CARDS[0], members[0], 6)


def test_nobody_was_done_in_the_future() -> None:
    scene = Scene()
    session = scene.session()
    scene.say(session, What.JOIN)
    scene.take_said()
    scene.say(session, What.DRAINED, at=(1 << 64) - 1)
    ((*_, at, _, now),) = scene.take_said()
    assert at == now


@pytest.mark.parametrize("which", ["calls", "signals"])
def test_a_member_leaves_with_either_of_its_connections_and_once(which: str) -> None:
    scene = Scene()
    session = scene.session()
    for card in (0, 1):
        scene.say(session, What.JOIN, card)
    scene.take_said()
    fake(getattr(session, which)).close()
    assert sorted(said[:3] for said in scene.take_said()) == [("left", KEY, CARDS[0]), ("left", KEY, CARDS[1])]
    fake(session.calls).close()
    fake(session.signals).close()
    assert not scene.take_said()


def test_lines_are_written_in_order_before_members_are_told() -> None:
    scene = Scene()
    one, two, other = scene.session(), scene.session(pid=2), scene.session(OTHER)
    for session in (one, two, other):
        scene.say(session, What.JOIN, 1)
    scene.arbiter.acts = [
        Write(OWN, CARDS[1], LineState.TIMESLICE, 8, 1 << 30),
        Notify(OWN, CARDS[1], 8),
        Write(OTHERS_OWN, CARDS[1], LineState.CLOSED, 9, 0),
        Write(OWN, CARDS[0], LineState.SOLE, 5, 0),
    ]
    scene.alarms[0].ring()
    assert scene.served[KEY].page.written == [
        (1, pack(LineState.TIMESLICE, 8, 1 << 30), True),
        (0, pack(LineState.SOLE, 5, 0), False),  # no process of it sleeps there
    ]
    assert scene.served[OTHER].page.written == [(1, pack(LineState.CLOSED, 9, 0), True)]
    assert [fake(session.signals).hints for session in (one, two, other)] == [[line_hint(1, 8)], [line_hint(1, 8)], []]


def test_a_connection_that_breaks_while_it_is_told_leaves_and_what_follows_is_done() -> None:
    scene = Scene()
    one, two = scene.session(), scene.session(pid=2)
    for session in (one, two):
        scene.say(session, What.JOIN)
    fake(one.signals).breaks = True
    scene.take_said()
    scene.arbiter.acts = [Notify(OWN, CARDS[0], 8), Write(OWN, CARDS[0], LineState.FREE, 9, 0)]
    scene.say(two, What.WANT)
    assert [said[0] for said in scene.take_said()] == ["wanted", "left"]
    assert fake(two.signals).hints == [line_hint(0, 8)]
    assert [word for _, word, _ in scene.served[KEY].page.written] == [pack(LineState.FREE, 9, 0)]


def test_what_is_decided_for_a_container_that_is_gone_goes_nowhere() -> None:
    scene = Scene()
    scene.registry.leave(OTHER)
    scene.arbiter.acts = [Write(OTHERS_OWN, CARDS[0], LineState.FREE, 1, 0), Notify(OTHERS_OWN, CARDS[0], 1)]
    scene.timeslices.drop(OTHERS_OWN)
    assert scene.take_said() == [("drop", OTHER)]


def test_shares_limits_and_the_gang_in_force_are_what_the_arbiter_hears_of_metered_cards() -> None:
    scene = Scene()
    cards = (
        CardSpec(id=CARDS[0], memory=1, share=300, limit=800, lowered_limit=200),
        CardSpec(id=CARDS[1], memory=1, share=300, limit=800, lowered_share=100),
        CardSpec(id=CARDS[2], memory=1, share=300, limit=800),
    )
    train = Gang(pod().namespace, "train", 2)
    spec = Spec(key=KEY, pod=pod(), container=ContainerName("main"), gen=1, cards=cards, library="", gang=train)
    scene.timeslices.put(spec)
    assert scene.take_said() == [
        ("put", KEY, CARDS[0], 200, 200, train),
        ("put", KEY, CARDS[1], 100, 800, train),
    ]


def test_containers_of_a_budget_have_one_seat_and_each_its_own_page() -> None:
    scene = Scene()
    budget = budget_key(pod().uid, BudgetName("pod"))
    keys = [ContainerKey(digit * 32) for digit in "ab"]
    first, late = (scene.enter(key, budget) for key in keys)
    for key in keys:
        scene.say(scene.session(key), What.JOIN)
    assert [said[:3] for said in scene.take_said()] == [("joined", budget, CARDS[0])] * 2
    scene.arbiter.acts = [Write(budget, CARDS[0], LineState.TIMESLICE, 8, 1 << 30)]
    scene.alarms[0].ring()
    assert first.page.written == late.page.written == [(0, pack(LineState.TIMESLICE, 8, 1 << 30), True)]


def test_a_container_that_comes_late_to_a_budget_finds_the_line_as_it_is() -> None:
    scene = Scene()
    cards = (CardSpec(id=CARDS[0], memory=1, share=300, limit=800),)
    spec = Spec(
        key=ContainerKey("a" * 32),
        pod=pod(),
        container=ContainerName("late"),
        gen=1,
        cards=cards,
        library="",
        budget=BudgetName("pod"),
    )
    late = scene.enter(spec.key, spec.budget_key)
    scene.timeslices.put(spec)
    assert late.page.written == [(0, pack(LineState.SOLE, scene.arbiter.epochs, 0), False)]
    assert not scene.served[KEY].page.written


def test_a_silent_process_that_does_not_run_is_told_from_one_that_does() -> None:
    scene = Scene()
    child = subprocess.Popen(["sleep", "60"])
    try:
        os.kill(child.pid, signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        stopped, running = scene.session(pid=child.pid), scene.session(pid=os.getpid())
        for session in (stopped, running):
            scene.say(session, What.JOIN)
        members = [said[3] for said in scene.take_said()]
        scene.arbiter.silents = [Silent(OWN, CARDS[0], member) for member in members]
        scene.timeslices.look()
        assert [said[:4] for said in scene.take_said()] == [("stopped", KEY, CARDS[0], members[0])]
    finally:
        child.kill()
        child.wait()


_STEPS = st.lists(
    st.tuples(
        st.sampled_from([What.JOIN, What.WANT, What.DRAINED, What.IDLE, "calls ends", "signals ends"]),
        st.integers(0, 2),
        st.integers(0, 2),
        st.integers(0, 2**32 - 1),
    ),
    max_size=40,
)


@given(_STEPS)
def test_whatever_processes_say_the_arbiter_hears_of_members_alone(
    steps: list[tuple[What | str, int, int, int]],
) -> None:
    scene = Scene()
    sessions = [scene.session(pid=pid) for pid in range(3)]
    for what, who, card, number in steps:
        if isinstance(what, What):
            scene.say(sessions[who], what, card, epoch=number, at=number)
        else:
            fake(getattr(sessions[who], what.split()[0])).close()
            sessions[who] = scene.session(pid=who)
    there = set[object]()
    for name, key, card, member, *_ in scene.take_said():
        assert (key, card in CARDS[:2]) == (KEY, True)
        assert (member in there) is (name != "joined")
        there ^= {member} if name in {"joined", "left"} else set()
    for session in sessions:
        fake(session.calls).close()
        fake(session.signals).close()
    assert {said[3] for said in scene.take_said()} == there


def test_what_is_said_costs_its_own_container_whatever_it_is_worth() -> None:
    scene = Scene()
    session = scene.session()
    for what in (What.JOIN, What.JOIN, What.WANT, What.DRAINED, What.IDLE):
        scene.say(session, what, epoch=1)
    scene.say(scene.session(pid=2), What.WANT)
    assert scene.served[KEY].bucket.cost == 6 * (LEASE_COSTS - 1)  # one each was charged on arrival
    assert scene.served[OTHER].bucket.cost == 0
