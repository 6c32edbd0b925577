"""An undecodable pod holds an unknown amount: its node takes no new shares until the pod is readable or gone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from partage_base.kube.undecodable import Undecodable
from partage_plugins.api.keys import SIGNATURE
from partage_scheduler.cluster.unknown import UNREAD
from unit.scheduler.cluster.stage import FREED, NONE, POD, Stage, holding, piled

HELD = holding("a", "n", "t0")
UNREAD_SOMEWHERE = Undecodable(("team", "a"), "it is too large", HELD.uid, "9")
UNREAD_ON_N = replace(UNREAD_SOMEWHERE, node="n")
NOTED = replace(UNREAD_ON_N, annotations=HELD.metadata.annotations)


def test_its_node_takes_no_pod_with_devices_and_others_do() -> None:
    stage = Stage(piled("n", 3), piled("m", 3))
    stage.event_handlers.undecodable(UNREAD_ON_N)
    assert stage.why_not() == {UNREAD.words: ["n"]}
    assert stage.why_not(devices=0) == {}


def test_it_is_known_by_where_it_was_seen_last_and_holds_what_it_held() -> None:
    stage = Stage(piled("n", 3))
    stage.pod(HELD)
    stage.event_handlers.undecodable(UNREAD_SOMEWHERE)
    assert stage.why_not() == {UNREAD.words: ["n"]}
    assert stage.left("n")[0] == 2


def test_of_a_pod_that_was_never_seen_and_says_no_node_nothing_follows() -> None:
    stage = Stage(piled("n", 3))
    stage.event_handlers.undecodable(UNREAD_SOMEWHERE)
    assert stage.why_not() == {}


def test_when_it_can_be_read_or_is_gone_who_waits_is_tried_again() -> None:
    stage = Stage(piled("n", 3))
    stage.event_handlers.undecodable(UNREAD_ON_N)
    assert stage.pod(HELD) == POD | FREED
    assert stage.why_not() == {}
    stage.event_handlers.undecodable(UNREAD_ON_N)
    assert stage.event_handlers.gone(HELD.uid) == FREED
    assert stage.why_not() == {}


def test_a_list_without_it_frees_its_node() -> None:
    stage = Stage(piled("n", 3))
    stage.event_handlers.undecodable(UNREAD_ON_N)
    assert stage.event_handlers.listed([]) == FREED
    assert stage.event_handlers.listed([]) == NONE


def test_it_holds_what_it_held_while_lists_come_without_it_and_is_read_again_after() -> None:
    stage = Stage(piled("n", 3))
    stage.pod(HELD)
    stage.event_handlers.listed([], UNREAD_SOMEWHERE)
    assert stage.left("n")[0] == 2
    stage.pod(holding("a", "n", "t0", version=2))
    assert (stage.why_not(), stage.left("n")[0]) == ({}, 2)


def test_a_node_that_is_not_known_yet_is_barred_when_it_comes() -> None:
    stage = Stage()
    stage.event_handlers.undecodable(UNREAD_ON_N)
    assert stage.why_not() == {}
    stage.cluster.node(piled("n", 3))
    stage.cluster.heartbeat("n", 0.0, 0.0)
    assert stage.why_not() == {UNREAD.words: ["n"]}


def test_a_new_scheduler_counts_what_is_signed_for_it_until_it_is_gone() -> None:
    stage = Stage(piled("n", 3))
    stage.event_handlers.listed([], NOTED)
    assert (stage.why_not(), stage.left("n")[0]) == ({UNREAD.words: ["n"]}, 2)
    stage.pod(holding("a", "n", "t0", version=10))
    assert (stage.why_not(), stage.left("n")[0]) == ({}, 2)
    assert stage.event_handlers.listed([]) == FREED
    assert stage.left("n")[0] == 3


def test_one_that_was_never_read_is_gone_with_a_list_that_lacks_it() -> None:
    stage = Stage(piled("n", 3))
    stage.event_handlers.listed([], NOTED)
    assert stage.event_handlers.listed([]) == FREED
    assert (stage.why_not(), stage.left("n")[0]) == ({}, 3)


@pytest.mark.parametrize("otherwise", [{SIGNATURE: "bad"}, {}])
def test_what_is_not_signed_for_it_counts_for_nothing(otherwise: dict[str, str]) -> None:
    stage = Stage(piled("n", 3), piled("m", 3))
    notes = {**HELD.metadata.annotations, **otherwise}
    stage.event_handlers.listed([], replace(NOTED, node="n" if otherwise else "m", annotations=notes))
    assert (stage.left("n")[0], stage.left("m")[0]) == (3, 3)
