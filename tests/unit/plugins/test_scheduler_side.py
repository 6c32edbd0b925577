"""Each hook of the scheduler framework, called as the scheduler calls it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partage_plugins import DecodeError, Refused, hookimpl
from partage_plugins.api import PluginName, Reason, Resources, Slot
from partage_plugins.api.words import DialectWords
from partage_plugins.errors import DialectConflict, PluginBroken, PluginFailed, PluginNonsense
from partage_plugins.framework.scheduler import FrameworkSettings, SchedulerFramework
from support.sides import (
    MAIN,
    NODE,
    OTHER,
    OWNER,
    THING,
    Ask,
    Record,
    Thing,
    allocation,
    inventory,
    load_scheduler,
    plugin,
    pod,
    request,
    scheduler_side,
    slots,
    verdict,
)

TWO = slots(3, 7)


def test_partage_kind_gives_a_kind_its_owner() -> None:
    framework = scheduler_side(owner=OWNER, speaks=plugin(requests={"main": {"thing": Ask(2)}}))
    assert framework.requests(pod()).of(THING) == {"main": Ask(2)}


def test_partage_requests_come_together_in_the_pods_order() -> None:
    answers = plugin(requests={"side": {"thing": Ask(2)}, "main": {"thing": Ask(1)}})
    read = scheduler_side(owner=OWNER, silent=plugin(requests=None), speaks=answers).requests(
        pod("main", "quiet", "side")
    )
    assert [(container.name, container.of(THING)) for container in read.containers] == [
        ("main", Ask(1)),
        ("side", Ask(2)),
    ]


def test_partage_requests_in_two_dialects_are_refused_naming_both() -> None:
    framework = scheduler_side(
        owner=OWNER, a=plugin(requests={"main": {"thing": Ask()}}), b=plugin(requests={"side": {"thing": Ask()}})
    )
    with pytest.raises(DialectConflict, match="asks for thing in two dialects, a and b"):
        framework.requests(pod("main", "side"))


def test_partage_resources_are_those_of_all_plugins() -> None:
    framework = scheduler_side(
        a=plugin(resources=["fpga.example.com/boards"]), b=plugin(resources=("x.org/y", "fpga.example.com/boards"))
    )
    assert framework.resources() == {"fpga.example.com/boards", "x.org/y"}
    assert not scheduler_side(a=plugin(requests=None)).resources()


@pytest.mark.parametrize("answer", ["x.org/y", None, ["cpu"], ["memory"], ["x.org/"], ["kubernetes.io/x"], [1]])
def test_partage_resources_that_are_a_nodes_own_or_no_names_are_refused(answer: object) -> None:
    with pytest.raises(PluginNonsense, match="allowed: "):
        scheduler_side(a=plugin(resources=answer)).resources()


def words_of(system: str, **more: Any) -> DialectWords:
    return DialectWords(system=system, where="limits", remedy="do", **more)


def test_partage_words_are_those_of_all_plugins() -> None:
    framework = scheduler_side(a=plugin(words=[words_of("x")]), b=plugin(words=(words_of("y"), words_of("z"))))
    assert {each.system for each in framework.words()} == {"x", "y", "z"}
    assert not scheduler_side(a=plugin(requests=None)).words()


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "words",
        ["x.org/y"],
        [words_of("x", prefixes=("",))],
        [words_of("x", families=("",))],
        [words_of("x", asking=frozenset((1,)))],
    ],
)
def test_partage_words_that_are_none_are_refused(answer: object) -> None:
    with pytest.raises(PluginNonsense, match=r"allowed: |wrong value"):
        scheduler_side(a=plugin(words=answer)).words()


def test_partage_requests_for_a_kind_that_nobody_owns_are_refused() -> None:
    with pytest.raises(Refused, match="no plugin allocates thing, for which a read a request"):
        scheduler_side(a=plugin(requests={"main": {"thing": Ask()}})).requests(pod())


@pytest.mark.parametrize("no", [Refused("no"), DecodeError("request", path="$", value="x", allowed="y")])
def test_a_considered_no_of_a_dialect_is_passed_on(no: Exception) -> None:
    with pytest.raises(type(no)) as caught:
        scheduler_side(owner=OWNER, a=plugin(requests=no)).requests(pod())
    assert caught.value is no


@pytest.mark.parametrize(
    ("nonsense", "why"),
    [
        ([1], "returned list"),
        ({"nobody": {"thing": Ask()}}, "for 'nobody'"),
        ({"main": [Ask()]}, "for 'main'"),
        ({"main": {"thing": 5}}, "returned int for thing; allowed: Ask"),
        ({"main": {"thing": Thing()}}, "returned Thing for thing; allowed: Ask"),
        ({"main": {"thing": Ask("many")}}, "returned a request for thing with a wrong value"),  # type: ignore[arg-type]
        ({"main": {"thing": Ask([1])}}, "returned a request for thing with a wrong value"),  # type: ignore[arg-type]
    ],
)
def test_nonsense_requests_are_the_plugins_fault(nonsense: object, why: str) -> None:
    with pytest.raises(PluginNonsense, match="plugin a: partage_requests") as caught:
        scheduler_side(owner=OWNER, a=plugin(requests=nonsense)).requests(pod())
    assert why in caught.value.why


def test_any_exception_becomes_a_fault_with_names_and_cause() -> None:
    with pytest.raises(PluginFailed, match="plugin a: partage_requests: raised KeyError: 'x'") as caught:
        scheduler_side(a=plugin(requests=KeyError("x"))).requests(pod())
    assert isinstance(caught.value.__cause__, KeyError)


def test_partage_shape_of_all_plugins_together() -> None:
    class Shaped:
        @hookimpl
        def partage_shape(self, request: Any) -> int:
            return len(request.containers)

    class ShapedAndFitting(Shaped):
        @hookimpl
        def partage_fits(self, request: object, slots: object) -> Any: ...

    framework = scheduler_side(a=Shaped, b=ShapedAndFitting)
    assert framework.shape(request(uid="u1")) == framework.shape(request(uid="u2"))


def test_without_partage_shape_an_answering_plugin_is_asked_for_every_pod() -> None:
    framework = scheduler_side(a=plugin(fits=verdict(True, True)))
    assert framework.shape(request(uid="u1")) != framework.shape(request(uid="u2"))
    assert framework.shape(request(uid="u1")) == framework.shape(request(uid="u1"))


def test_partage_fits_must_be_agreed_by_all_and_the_first_refusal_is_the_reason() -> None:
    four = slots(0, 1, 2, 3)
    a = verdict(True, False, True, False, codes=(9, 1, 9, 0), reasons=("small", "old"))
    b = verdict(True, True, False, False, codes=(9, 9, 0, 0), reasons=("far",))
    answer = scheduler_side(a=plugin(fits=a), b=plugin(fits=b)).fits(request(), four)
    codes, table = answer.reasons()
    assert answer.fits.tolist() == [True, False, False, False]
    said = [str(table[code]) for code, fits in zip(codes, answer.fits, strict=True) if not fits]
    assert said == ["old", "far", "small"]


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        (7, "returned int as a reason; allowed: a text or a Reason"),
        (Reason("thing/few", "{} of {} things", figures=("1",)), "figures and words do not go together"),
        (Reason("thing/few", "{what} is missing", figures=("1",)), "figures and words do not go together"),
    ],
)
def test_a_reason_that_cannot_be_told_is_the_plugins_fault(reason: object, why: str) -> None:
    wrong = verdict(False, True, codes=(0, 0))._replace(reasons=(reason,))  # type: ignore[arg-type]
    answer = scheduler_side(a=plugin(fits=wrong)).fits(request(), TWO)
    with pytest.raises(PluginNonsense, match=why):
        answer.reasons()


def test_without_any_plugin_every_node_fits() -> None:
    answer = scheduler_side().fits(request(), TWO)
    assert answer.fits.tolist() == [True, True]
    assert answer.reasons()[1] == ()


@pytest.mark.parametrize(
    ("nonsense", "why"),
    [
        (None, "returned NoneType"),
        ((np.ones(2, bool), np.zeros(2, np.uint8), ()), "returned tuple; allowed: a Fits"),
        (verdict(True), "fits as bool(1,); allowed: an array bool(2,)"),
        (verdict(True, True)._replace(fits=np.ones(2, np.int8)), "fits as int8(2,)"),
        (verdict(True, True)._replace(fits=[True, True]), "fits as list"),  # type: ignore[arg-type]
        (verdict(True, True)._replace(codes=np.zeros(2, np.int64)), "codes as int64(2,)"),
        (verdict(True, True)._replace(reasons=["no"]), "allowed: a tuple"),  # type: ignore[arg-type]
    ],
)
def test_nonsense_fits_are_the_plugins_fault(nonsense: object, why: str) -> None:
    with pytest.raises(PluginNonsense) as caught:
        scheduler_side(a=plugin(fits=nonsense)).fits(request(), TWO)
    assert why in caught.value.why


def test_a_reason_code_outside_its_table_is_the_plugins_fault() -> None:
    answer = scheduler_side(a=plugin(fits=verdict(False, True, codes=(4, 0)))).fits(request(), TWO)
    with pytest.raises(PluginNonsense, match="plugin a: partage_fits: gave reason code 4 of a table of 1"):
        answer.reasons()


def test_partage_scores_are_summed_by_weight() -> None:
    one = plugin(scores=np.array([1, 2], np.float32))
    registry, _ = load_scheduler(a=one, b=one)
    framework = SchedulerFramework(registry, Record(), settings=FrameworkSettings(weights={PluginName("a"): 3.0}))
    assert framework.scores(request(), TWO).tolist() == [4, 8]
    assert scheduler_side().scores(request(), TWO).tolist() == [0, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_names_its_plugin(bad: float) -> None:
    good, wrong = plugin(scores=np.array([1, 2], np.float32)), plugin(scores=np.array([1, bad], np.float32))
    with pytest.raises(PluginNonsense, match="plugin wrong: partage_scores: gave a score that is not finite"):
        scheduler_side(good=good, wrong=wrong).scores(request(), TWO)


def test_large_finite_scores_are_no_fault() -> None:
    huge = plugin(scores=np.array([1e38, -1e38], np.float32))
    assert np.isfinite(scheduler_side(a=huge).scores(request(), TWO)).all()


@pytest.mark.parametrize("nonsense", [None, [1.0, 2.0], np.ones(2), np.ones(3, np.float32)])
def test_nonsense_scores_are_the_plugins_fault(nonsense: object) -> None:
    with pytest.raises(PluginNonsense, match="plugin a: partage_scores: returned scores as"):
        scheduler_side(a=plugin(scores=nonsense)).scores(request(), TWO)


def test_partage_allocate_is_asked_of_each_kinds_owner() -> None:
    framework = scheduler_side(
        a=plugin(kind=THING, allocate={"main": [Thing("t1"), Thing("t2")]}),
        b=plugin(kind=OTHER, allocate={"main": [Thing("o1")]}),
    )
    assert framework.allocate(request(THING, OTHER), Slot(0)) == {
        MAIN: {"thing": (Thing("t1"), Thing("t2")), "other": (Thing("o1"),)}
    }
    assert framework.allocate(request(OTHER), Slot(0)) == {MAIN: {"other": (Thing("o1"),)}}


def test_an_owner_that_does_not_allocate_refuses_the_pod() -> None:
    with pytest.raises(Refused, match="no plugin of this scheduler allocates thing"):
        scheduler_side(a=OWNER).allocate(request(), Slot(0))


@pytest.mark.parametrize(
    ("nonsense", "why"),
    [
        ([], "returned list"),
        ({}, "granted to []; allowed: exactly the containers that ask, ['main']"),
        ({"main": [Thing()], "side": [Thing()]}, "granted to ['main', 'side']"),
        ({"main": []}, "allowed: one or more of Thing"),
        ({"main": [Ask()]}, "allowed: one or more of Thing"),
        ({"main": [Thing(5)]}, "granted a wrong value to main"),  # type: ignore[arg-type]
    ],
)
def test_nonsense_grants_are_the_plugins_fault(nonsense: object, why: str) -> None:
    with pytest.raises(PluginNonsense) as caught:
        scheduler_side(a=plugin(kind=THING, allocate=nonsense)).allocate(request(), Slot(0))
    assert why in caught.value.why


class Counting:
    """Owns a kind, counts calls, and fails as often as the test sets."""

    made = 0
    failures = 0
    failure: Exception = RuntimeError("lost count")
    seen: list[tuple[object, ...]]

    def __init__(self) -> None:
        type(self).made += 1
        self.seen = type(self).seen = []

    @hookimpl
    def partage_kind(self) -> object:
        return THING

    def _note(self, *what: object) -> None:
        self.seen.append(what)
        if what[0] in ("take", "give back") and type(self).failures:
            type(self).failures -= 1
            raise self.failure

    @hookimpl
    def partage_node_added(self, slot: Slot, node: object) -> None:
        self._note("added", slot, node)

    @hookimpl
    def partage_node_removed(self, slot: Slot) -> None:
        self._note("removed", slot)

    @hookimpl
    def partage_node_room(self, slot: Slot, total: Resources, free: Resources) -> None:
        self._note("room", slot, total.cpu_milli, free.cpu_milli)

    @hookimpl
    def partage_take(self, slot: Slot, allocation: Any) -> None:
        self._note("take", slot, allocation.pod)

    @hookimpl
    def partage_give_back(self, slot: Slot, allocation: Any) -> None:
        self._note("give back", slot, allocation.pod)


def counting(failures: int = 0) -> type[Counting]:
    return type("Counted", (Counting,), {"failures": failures})


def test_partage_node_added_and_partage_node_removed_reach_every_plugin() -> None:
    a, b = counting(), plugin(node_removed=None)
    framework = scheduler_side(a=a, b=b)
    framework.node_added(Slot(4), NODE, inventory())
    framework.node_removed(Slot(4))
    assert a.seen == [("added", 4, NODE), ("removed", 4)]


def test_partage_node_room_reaches_every_plugin_and_is_told_again_before_allocations() -> None:
    mine, record = counting(failures=1), Record()
    framework = scheduler_side(record, mine=mine)
    record.known = {Slot(4): (NODE, inventory())}
    record.room = {Slot(4): (Resources(cpu_milli=8000), Resources(cpu_milli=500))}
    framework.node_room(Slot(4), *record.room[Slot(4)])
    assert mine.seen == [("room", 4, 8000, 500)]
    record.taken = [(Slot(4), allocation())]
    framework.take(Slot(4), allocation())
    assert mine.seen == [("added", 4, NODE), ("room", 4, 8000, 500), ("take", 4, "u1")]


def test_partage_take_and_partage_give_back_reach_owners_of_a_kind_in_it_alone() -> None:
    mine = counting()
    framework = scheduler_side(mine=mine)
    framework.take(Slot(1), allocation(THING))
    framework.take(Slot(1), allocation(OTHER))
    framework.give_back(Slot(1), allocation(THING, OTHER))
    assert mine.seen == [("take", 1, "u1"), ("give back", 1, "u1")]


@pytest.mark.parametrize("hook", ["partage_take", "partage_give_back"])
def test_a_plugin_that_fails_to_count_is_made_anew_and_told_everything_again(hook: str) -> None:
    mine, record = counting(failures=1), Record()
    framework = scheduler_side(record, mine=mine)
    record.known = {Slot(0): (NODE, inventory()), Slot(1): (NODE, inventory())}
    record.taken = [(Slot(0), allocation(uid="old")), (Slot(1), allocation(OTHER, uid="not mine"))]
    if hook == "partage_take":
        record.taken.append((Slot(1), allocation(uid="new")))
        framework.take(Slot(1), allocation(uid="new"))
    else:
        framework.give_back(Slot(1), allocation(uid="new"))
    expected = [("added", 0, NODE), ("added", 1, NODE), ("take", 0, "old")]
    assert mine.made == 2
    assert mine.seen == expected + ([("take", 1, "new")] if hook == "partage_take" else [])
    framework.give_back(Slot(0), allocation(uid="old"))
    assert mine.seen[-1] == ("give back", 0, "old"), "the façade speaks to the new instance"


def test_whoever_keeps_the_log_is_told_why_a_plugin_was_made_anew() -> None:
    registry, _ = load_scheduler(mine=counting(failures=1))
    told: list[Exception] = []
    SchedulerFramework(registry, Record(), on_renewed=told.append).take(Slot(0), allocation())
    assert [str(why) for why in told] == ["plugin mine: partage_take: raised RuntimeError: lost count"]


@pytest.mark.parametrize("no", [Refused("no"), DecodeError("x", path="$", value="y", allowed="z")])
def test_a_no_where_only_counting_is_asked_for_is_a_failure_to_count(no: Exception) -> None:
    mine = counting(failures=1)
    mine.failure = no
    scheduler_side(mine=mine).take(Slot(0), allocation())
    assert mine.made == 2


def test_a_plugin_that_fails_again_in_the_replay_is_broken() -> None:
    record = Record()
    record.taken = [(Slot(0), allocation())]
    with pytest.raises(
        PluginBroken, match=r"plugin mine: replay: failed .*lost count.*, was renewed, and failed again"
    ):
        scheduler_side(record, mine=counting(failures=2)).take(Slot(0), allocation())


def test_partage_mirror_is_what_the_pods_dialect_says() -> None:
    framework = scheduler_side(
        owner=OWNER, Other=plugin(mirror=None), Spoken=plugin(mirror={"volcano.sh/vgpu-node": "n1"})
    )
    assert framework.mirror(pod(), allocation(), inventory()) == {"volcano.sh/vgpu-node": "n1"}


@pytest.mark.parametrize(
    "answer", ["text", {"a/b": 1}, {"plain": "x"}, {"partage.dev/cards": "x"}, {"alloc.partage.dev/allocation": "x"}]
)
def test_partage_mirror_writes_no_word_of_ours(answer: object) -> None:
    with pytest.raises(PluginNonsense, match="allowed: annotations"):
        scheduler_side(owner=OWNER, Spoken=plugin(mirror=answer)).mirror(pod(), allocation(), inventory())
