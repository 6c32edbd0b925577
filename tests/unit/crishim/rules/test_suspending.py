"""A signed allocation suspends a pod: others may have its room once nothing of it is on its cards, and not before."""

from __future__ import annotations

import json

import pytest

from partage_plugins.api import GPU, Promise
from partage_plugins.api.places import RESIZES_FOLDER, SUSPENDED_FILE
from partage_plugins.errors import Refused
from unit.crishim.rules.allocations import Document, allocation, grant, signed, write_newer
from unit.crishim.rules.requests import Create
from unit.crishim.rules.stage import Crishim, Stage, enforced
from unit.crishim.rules.test_resizes import faults, look

FOR = {"by": "uid-big", "at": 1767312000}
CAN_NOT = Refused("container main of pod trainer runs on: it has memory that can't leave a card")


def of(uid: str, gen: int, *, suspended: bool) -> Document:
    more: Document = {"crit": ["suspended"], "suspended": FOR} if suspended else {}
    return allocation(grant(share=700), pod=uid, gen=gen, **more)


def pod(uid: str, gen: int = 1, *, suspended: bool = False, attempt: int = 0) -> Create:
    return Create(uid=uid, annotations=signed(of(uid, gen, suspended=suspended)), attempt=attempt)


def hand_over(stage: Stage, uid: str, gen: int, *, suspended: bool = True) -> None:
    write_newer(stage.root, of(uid, gen, suspended=suspended))


def report(stage: Stage) -> Document:
    try:
        found: Document = json.loads((stage.root / SUSPENDED_FILE).read_text())
    except FileNotFoundError:
        return {}
    return found


def moves(stage: Stage, *, is_off: bool) -> None:
    """What the node's plugins say of the container's memory from now on."""
    made = enforced()
    promises: tuple[Promise, ...] = (*made.adjustment.enforces[GPU.name], *(("suspended",) if is_off else ()))
    stage.fake.answer = type(made)(
        adjustment=type(made.adjustment)(enforces={GPU.name: promises}), owners={}, unenforced={}
    )


def asked(stage: Stage) -> list[bool | None]:
    return [granted.suspended for _, granted in stage.fake.asked]


def suspended(stage: Stage, crishim: Crishim) -> None:
    """Pod `a`, of gen 1, is suspended by gen 2."""
    crishim.rewrite(pod("a"))
    moves(stage, is_off=True)
    hand_over(stage, "a", 2)
    look(crishim)
    moves(stage, is_off=False)


def test_its_room_is_given_to_others_once_the_node_says_that_it_is_off_the_card(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a"))
    hand_over(stage, "a", 2)
    for _ in range(2):
        look(crishim)
        assert report(stage) == {"a": {"gen": 2}}
        assert "compute" in crishim.refusal(pod("b"))
    moves(stage, is_off=True)
    assert look(crishim) == [2]
    assert report(stage) == {"a": {"gen": 2, "is_done": True}}
    assert asked(stage) == [None, True, True, True]
    assert look(crishim) == []
    moves(stage, is_off=False)
    crishim.rewrite(pod("b"))
    assert not faults(stage)


def test_nothing_of_a_suspended_pod_starts_from_its_new_allocation_nor_from_an_older_one(
    stage: Stage, crishim: Crishim
) -> None:
    suspended(stage, crishim)
    assert "is suspended" in crishim.refusal(pod("a", 2, suspended=True, attempt=1))
    assert "older" in crishim.refusal(pod("a", 1, attempt=1))


def test_a_pod_that_has_no_container_just_now_is_suspended_by_starting_none(stage: Stage, crishim: Crishim) -> None:
    hand_over(stage, "a", 2)
    assert look(crishim) == []
    assert report(stage) == {"a": {"gen": 2, "is_done": True}}
    assert "older" in crishim.refusal(pod("a", 1))


def test_an_older_allocation_that_comes_again_suspends_nothing_even_if_no_container_runs(
    stage: Stage, crishim: Crishim
) -> None:
    suspended(stage, crishim)
    hand_over(stage, "a", 3, suspended=False)
    assert look(crishim) == [3]
    stage.runtime.listed.clear()
    hand_over(stage, "a", 2)
    look(stage.crishim())
    assert report(stage) == {}
    assert "older" in faults(stage)[0]


def test_another_crishim_knows_what_this_one_reported(stage: Stage, crishim: Crishim) -> None:
    suspended(stage, crishim)
    again = stage.crishim()
    assert look(again) == []
    assert report(stage) == {"a": {"gen": 2, "is_done": True}}
    again.rewrite(pod("b"))


def test_a_damaged_report_is_written_again(stage: Stage, crishim: Crishim) -> None:
    suspended(stage, crishim)
    (stage.root / SUSPENDED_FILE).write_text("{")
    look(stage.crishim())
    assert report(stage) == {"a": {"gen": 2, "is_done": True}}


def test_it_comes_back_when_there_is_room_again_which_it_then_has(stage: Stage, crishim: Crishim) -> None:
    suspended(stage, crishim)
    other = pod("b")
    crishim.rewrite(other)
    hand_over(stage, "a", 3, suspended=False)
    assert look(crishim) == []
    assert "not enough compute" in faults(stage)[0]
    assert report(stage) == {}
    stage.runtime.listed.pop(f"c-b-{other.container}-0")
    assert look(crishim) == [3]
    assert stage.fake.asked[-1][1].suspended is False
    assert look(crishim) == []
    assert "compute" in crishim.refusal(pod("c"))


def test_a_resume_that_fails_counts_and_is_tried_again(stage: Stage, crishim: Crishim) -> None:
    suspended(stage, crishim)
    stage.fake.answer = Refused("partage: no broker answers")
    hand_over(stage, "a", 3, suspended=False)
    look(crishim)
    assert "compute" in crishim.refusal(pod("b"))
    stage.fake.answer = enforced()
    assert look(crishim) == [3]


def test_a_refusal_is_reported_and_not_asked_again_until_another_allocation_comes(
    stage: Stage, crishim: Crishim
) -> None:
    crishim.rewrite(pod("a"))
    stage.fake.answer = CAN_NOT
    hand_over(stage, "a", 2)
    assert look(crishim) == [2]
    assert report(stage) == {"a": {"gen": 2, "why": str(CAN_NOT)}}
    assert "runs on" in faults(stage)[0]
    assert look(crishim) == []
    stage.fake.answer = enforced()
    assert "compute" in crishim.refusal(pod("b"))
    hand_over(stage, "a", 3, suspended=False)
    assert look(crishim) == [3]
    assert report(stage) == {}


def test_a_node_that_does_not_answer_refuses_nothing(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a"))
    hand_over(stage, "a", 2)
    stage.runtime.away = True
    look(stage.crishim())
    assert report(stage) == {}


def test_an_unsigned_word_suspends_nothing(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a"))
    hand_over(stage, "a", 2)
    path = stage.root / RESIZES_FOLDER / "a.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "signature": "0f3a:AAAA"}))
    assert look(crishim) == []
    assert report(stage) == {}


def test_the_report_of_a_pod_that_is_gone_goes_with_its_file(stage: Stage, crishim: Crishim) -> None:
    suspended(stage, crishim)
    (stage.root / RESIZES_FOLDER / "a.json").unlink()
    look(crishim)
    assert report(stage) == {}


@pytest.mark.parametrize("other", ["main", "side"])
def test_a_pod_is_done_when_all_its_containers_are(stage: Stage, crishim: Crishim, other: str) -> None:
    both = allocation(grant(share=300), pod="a")
    both["containers"]["side"] = {"gpu": [grant(share=300)]}
    for name in ("main", "side"):
        crishim.rewrite(Create(uid="a", container=name, annotations=signed(both)))

    async def one_only() -> None:
        moves(stage, is_off=stage.fake.asked[-1][0].name == other)

    stage.fake.meanwhile = one_only
    write_newer(stage.root, {**both, "gen": 2, "crit": ["suspended"], "suspended": FOR})
    assert look(crishim) == [2, 2]
    assert report(stage) == {"a": {"gen": 2}}
    stage.fake.meanwhile = None
    moves(stage, is_off=True)
    assert look(crishim) == [2]
    assert report(stage) == {"a": {"gen": 2, "is_done": True}}
