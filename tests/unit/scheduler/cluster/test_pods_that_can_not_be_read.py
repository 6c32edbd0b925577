"""What a pod that can't be read holds is unknown: its node takes no new shares until it is readable or gone."""

from __future__ import annotations

from partage_plugins.vocabulary import NodeName
from partage_scheduler.cluster.unknown import UNREAD
from unit.scheduler.cluster.stage import FREED, NONE, POD, Stage, holding, piled

N = NodeName("n")
NOWHERE = NodeName("")
HELD = holding("a", "n", "t0")


def test_its_node_takes_no_pod_with_devices_and_others_do() -> None:
    stage = Stage(piled("n", 3), piled("m", 3))
    stage.cluster.pod_unread(HELD.uid, N)
    assert stage.why_not() == {UNREAD.words: ["n"]}
    assert stage.why_not(devices=0) == {}


def test_it_is_known_by_where_it_was_seen_last_and_holds_what_it_held() -> None:
    stage = Stage(piled("n", 3))
    stage.pod(HELD)
    stage.cluster.pod_unread(HELD.uid, NOWHERE)
    assert stage.why_not() == {UNREAD.words: ["n"]}
    assert stage.left("n")[0] == 2


def test_of_a_pod_that_was_never_seen_and_says_no_node_nothing_follows() -> None:
    stage = Stage(piled("n", 3))
    stage.cluster.pod_unread(HELD.uid, NOWHERE)
    assert stage.why_not() == {}


def test_when_it_can_be_read_or_is_gone_who_waits_is_tried_again() -> None:
    stage = Stage(piled("n", 3))
    stage.cluster.pod_unread(HELD.uid, N)
    assert stage.pod(HELD) == POD | FREED
    assert stage.why_not() == {}
    stage.cluster.pod_unread(HELD.uid, N)
    assert stage.intake.gone(HELD.uid) == FREED
    assert stage.why_not() == {}


def test_a_list_without_it_frees_its_node() -> None:
    stage = Stage(piled("n", 3))
    stage.cluster.pod_unread(HELD.uid, N)
    assert stage.intake.listed([]) == FREED
    assert stage.intake.listed([]) == NONE


def test_it_holds_what_it_held_while_lists_come_without_it_and_is_read_again_after() -> None:
    stage = Stage(piled("n", 3))
    stage.pod(HELD)
    stage.intake.listed([], HELD.uid)
    stage.cluster.pod_unread(HELD.uid, NOWHERE)
    assert stage.left("n")[0] == 2
    stage.pod(holding("a", "n", "t0", version=2))
    assert (stage.why_not(), stage.left("n")[0]) == ({}, 2)


def test_a_node_that_is_not_known_yet_is_barred_when_it_comes() -> None:
    stage = Stage()
    stage.cluster.pod_unread(HELD.uid, N)
    assert stage.why_not() == {}
    stage.cluster.node(piled("n", 3))
    stage.cluster.heartbeat("n", 0.0, 0.0)
    assert stage.why_not() == {UNREAD.words: ["n"]}
