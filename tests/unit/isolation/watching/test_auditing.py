"""Faults are found within a few rounds, and no container is accused because of a race."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from partage_isolation.audit.facts import Blind, ContainerFacts, ProcessFacts
from partage_isolation.audit.findings import Finding, OfContainer
from partage_isolation.audit.proofs import Birth
from partage_isolation.audit.suspicions import Bounds, Round, Rules
from partage_isolation.audit.verdict import Memory
from partage_plugins.api.names import BudgetName, ContainerKey
from unit.isolation.watching.scenes import CARD, ID, KEY, MIB, OTHER_KEY, Story, container, row, seen, sight

HONEST = seen(books=container(row(7, 500 * MIB)), uses={7: 500 * MIB}, sights=(sight(7),))
WITHOUT_LIBRARY = seen(books=container(), uses={7: 500 * MIB}, sights=(sight(7, library=False),))
COVERED = seen(books=container(), first_seen={ID: sight(1, wrong=("/run/partage",))})
TOO_MANY_MOUNTS = seen(books=container(), first_seen={ID: sight(1, wrong=None, too_long=("mounts",))})
TOO_MANY_MAPPINGS = seen(books=container(), uses={7: MIB}, sights=(sight(7, library=None, too_long=("mappings",)),))
BEYOND_LEDGER = seen(books=container(row(7, 100 * MIB)), uses={7: 165 * MIB}, sights=(sight(7),))


BESIDE_MANAGED = seen(books=container(row(7, 300 * MIB, hidden=200 * MIB)), uses={7: 165 * MIB}, sights=(sight(7),))
BESIDE_MANAGED_BEYOND_LIMIT = seen(
    books=container(row(7, 600 * MIB, overhead=746 * MIB, hidden=600 * MIB)), uses={7: 746 * MIB}, sights=(sight(7),)
)


def beyond_limit(by_mib: int, *, refused: int = 0) -> Round:
    """A container whose process exceeds its limit and the tolerance by `by_mib`, and was refused so often."""
    held = (1024 + 64 + by_mib) * MIB
    books = container(row(7, 100 * MIB, overhead=held - 100 * MIB), refused=refused)
    return seen(books=books, uses={7: held}, sights=(sight(7),))


BEYOND_LIMIT = beyond_limit(257)
WITHOUT_ROW = seen(books=container(), uses={7: 5 * MIB}, sights=(sight(7),))
NOBODY = seen(books=container(), uses={9: 5 * MIB}, sights=(sight(9, key=None, library=None, wrong=None),))
NOTHING = seen(books=container())
BLIND = replace(NOTHING, uses={CARD: Blind(CARD, 1)})


def test_an_honest_container_is_never_accused() -> None:
    assert Story().kinds(*[HONEST] * 20) == [set()] * 20


@pytest.mark.parametrize(
    ("wrong", "kind", "rounds"),
    [
        (WITHOUT_LIBRARY, "ProcessWithoutLibrary", 2),
        (COVERED, "CoveredMounts", 2),
        (TOO_MANY_MOUNTS, "TooMuchToRead", 2),
        (TOO_MANY_MAPPINGS, "TooMuchToRead", 2),
        (BEYOND_LEDGER, "BytesBeyondLedger", 2),
        (BEYOND_LIMIT, "BytesBeyondLimit", 2),
        (BESIDE_MANAGED, "BytesBeyondLedger", 2),
        (BESIDE_MANAGED_BEYOND_LIMIT, "BytesBeyondLimit", 2),
        (WITHOUT_ROW, "ProcessWithoutRow", 3),
        (NOBODY, "ProcessOfNobody", 3),
        (BLIND, "BlindCard", 2),
    ],
)
def test_what_stands_is_found_and_what_comes_right_is_forgotten(wrong: Round, kind: str, rounds: int) -> None:
    story = Story()
    assert story.kinds(*[wrong] * (rounds - 1)) == [set()] * (rounds - 1)
    assert story.kinds(wrong, wrong) == [{kind}] * 2
    assert story.kinds(NOTHING) == [set()]
    assert story.kinds(*[wrong] * (rounds - 1)) == [set()] * (rounds - 1), "it counts from the beginning again"


@pytest.mark.parametrize("wrong", [WITHOUT_LIBRARY, COVERED, BEYOND_LEDGER, BEYOND_LIMIT, WITHOUT_ROW, NOBODY])
def test_what_is_wrong_every_other_round_is_a_race(wrong: Round) -> None:
    assert Story().kinds(*[wrong, NOTHING] * 10) == [set()] * 20


@pytest.mark.parametrize("wrong", [WITHOUT_LIBRARY, COVERED, BEYOND_LEDGER, BEYOND_LIMIT])
def test_rounds_that_follow_too_closely_count_as_one(wrong: Round) -> None:
    assert Story().kinds(*[wrong] * 4, after_s=0.1) == [set()] * 4


@pytest.mark.parametrize("wrong", [WITHOUT_LIBRARY, BEYOND_LEDGER, BEYOND_LIMIT])
def test_a_card_that_does_not_answer_neither_convicts_nor_acquits(wrong: Round) -> None:
    blind = replace(wrong, uses=dict.fromkeys(wrong.uses))
    story = Story()
    assert story.kinds(wrong, *[blind] * 5) == [set()] * 6
    assert story.kinds(wrong) != [set()]


EXECS = [Birth(100, image) for image in range(10)]
REUSED = [Birth(start, 1) for start in range(10)]


@pytest.mark.parametrize("births", [EXECS, REUSED], ids=["it execs", "another process has its PID"])
def test_one_that_is_another_program_each_round_is_never_the_same(births: list[Birth]) -> None:
    sights = (sight(7, library=False, born=born) for born in births)
    rounds = [seen(books=container(), uses={7: 500 * MIB}, sights=(each,)) for each in sights]
    assert Story().kinds(*rounds) == [set()] * 10


def test_a_process_that_died_since_the_card_showed_it_is_nobodys_fault() -> None:
    assert Story().kinds(*[seen(books=container(), uses={7: 500 * MIB})] * 5) == [set()] * 5


def test_what_cannot_be_seen_accuses_nobody() -> None:
    unseen = sight(7, library=None, wrong=None)
    rounds = [seen(books=container(row(7, MIB)), uses={7: MIB}, sights=(unseen,), first_seen={ID: unseen})]
    assert Story().kinds(*rounds * 5) == [set()] * 5


def test_programs_that_no_card_shows_may_be_what_they_like() -> None:
    static = sight(7, library=False)
    assert Story().kinds(*[seen(books=container(), sights=(static,))] * 5) == [set()] * 5


def test_what_was_lent_between_two_looks_at_the_books_is_not_beyond_them() -> None:
    small, large = container(row(7, 10 * MIB)), container(row(7, 500 * MIB))
    growing = seen(before=small, books=large, uses={7: 500 * MIB}, sights=(sight(7),))
    shrinking = seen(before=large, books=small, uses={7: 500 * MIB}, sights=(sight(7),))
    assert Story().kinds(*[growing, shrinking] * 5) == [set()] * 10


def test_the_tolerance_is_64_mib_a_process() -> None:
    rows = [row(pid, 10 * MIB) for pid in range(4)]
    sights = tuple(sight(pid) for pid in range(4))
    at_the_edge = seen(books=container(*rows), uses=dict.fromkeys(range(4), 74 * MIB), sights=sights)
    beyond = seen(books=container(*rows), uses=dict.fromkeys(range(4), 74 * MIB + 1), sights=sights)
    assert Story().kinds(*[at_the_edge] * 3) == [set()] * 3
    assert Story().kinds(*[beyond] * 2)[-1] == {"BytesBeyondLedger"}


def test_a_limit_that_was_lowered_is_no_violation_as_long_as_nothing_grows() -> None:
    def round_with(limit: int, held: int) -> Round:
        books = container(row(7, held), limit=limit)
        return seen(books=books, uses={7: held}, sights=(sight(7),))

    story = Story()
    assert story.kinds(round_with(1000 * MIB, 900 * MIB), *[round_with(100 * MIB, 900 * MIB)] * 5) == [set()] * 6
    assert story.kinds(round_with(100 * MIB, 500 * MIB)) == [set()], "it has freed some"
    assert story.kinds(*[round_with(100 * MIB, 1100 * MIB)] * 2)[-1] == {"BytesBeyondLimit"}, "and may not go back"


def test_a_limit_that_was_lowered_before_the_audit_began_is_no_violation_either() -> None:
    books = container(row(7, 900 * MIB), limit=100 * MIB)
    limits = replace(books.cards[CARD], spec=structs.replace(books.cards[CARD].spec, most=1000 * MIB))
    lowered = seen(books=replace(books, cards={CARD: limits}), uses={7: 900 * MIB}, sights=(sight(7),))
    assert Story().kinds(*[lowered] * 5) == [set()] * 5


# ---- Growth ----------------------------------------------------------------------------------------------------------


def test_a_container_that_grew_a_little_beyond_its_limit_is_not_stopped_while_nothing_was_refused() -> None:
    assert Story().kinds(*[beyond_limit(256)] * 200) == [set()] * 200
    refused_before = beyond_limit(256, refused=3)
    assert Story().kinds(*[refused_before] * 200) == [set()] * 200, "that was no answer to it"


def test_what_may_grow_beyond_a_limit_is_a_quarter_of_it_and_512_mib_at_most() -> None:
    for limit_mib, most_mib in ((1024, 256), (2048, 512), (8192, 512)):
        for more_mib, kinds in ((0, set[str]()), (1, {"BytesBeyondLimit"})):
            held = (limit_mib + 64 + most_mib + more_mib) * MIB
            books = container(row(7, 0, overhead=held), limit=limit_mib * MIB)
            assert Story().kinds(*[seen(books=books, uses={7: held}, sights=(sight(7),))] * 2)[-1] == kinds


def test_a_container_that_stays_beyond_its_limit_after_it_was_refused_is_stopped() -> None:
    story = Story()
    assert story.kinds(beyond_limit(100, refused=3), *[beyond_limit(100, refused=4)] * 59) == [set()] * 60
    assert story.kinds(beyond_limit(100, refused=4)) == [{"BytesBeyondLimit"}]


def test_a_container_that_comes_back_within_its_limit_after_a_refusal_begins_anew() -> None:
    story = Story()
    beyond, refused, within = beyond_limit(100), beyond_limit(100, refused=1), beyond_limit(0, refused=1)
    assert story.kinds(beyond, *[refused] * 59, within, *[refused] * 200) == [set()] * 261


def test_a_card_that_does_not_answer_forgets_no_refusal() -> None:
    refused = beyond_limit(100, refused=1)
    silent = replace(refused, uses={CARD: None})
    story = Story()
    assert story.kinds(beyond_limit(100), silent, *[refused] * 59) == [set()] * 61
    assert story.kinds(silent, refused) == [set(), {"BytesBeyondLimit"}]


def test_contexts_that_do_not_count_come_on_top_of_the_limit() -> None:
    rules = Rules(context_in_limit=False)
    books = container(row(7, 1024 * MIB, overhead=500 * MIB))
    full = seen(books=books, uses={7: 1524 * MIB}, sights=(sight(7),))
    assert Story(rules=rules).kinds(*[full] * 3) == [set()] * 3


def test_a_process_whose_library_never_came_has_no_row_of_its_own() -> None:
    """The ledger charges what a card shows, whether or not the process has connected."""
    books = container(row(7, 0, unproved=5 * MIB, spoken=False, connected=False))
    assert Story().kinds(*[seen(books=books, uses={7: 5 * MIB}, sights=(sight(7),))] * 3)[-1] == {"ProcessWithoutRow"}


def test_a_row_without_a_connection_is_a_row() -> None:
    books = container(row(7, 5 * MIB, connected=False, state="unconfirmed"))
    assert Story().kinds(*[seen(books=books, uses={7: 5 * MIB}, sights=(sight(7),))] * 5) == [set()] * 5


def test_a_stranger_is_one_also_while_the_runtime_is_away() -> None:
    assert Story().kinds(*[replace(NOBODY, listing=None)] * 3)[-1] == {"ProcessOfNobody"}


def test_who_is_in_the_books_is_no_stranger_whatever_the_runtime_says() -> None:
    unknown = sight(7, key=None, library=None, wrong=None)
    books = container(row(7, MIB))
    for away in (True, False):
        one = seen(books=books, uses={7: MIB}, sights=(unknown,), runtime_away=away)
        assert Story().kinds(*[one] * 5) == [set()] * 5


def test_containers_that_owe_nothing_to_others_are_left_alone() -> None:
    """The runtime knows a container with whole cards; the ledger does not."""
    whole = sight(7, key=OTHER_KEY, library=False)
    both = {KEY: True, OTHER_KEY: True}
    assert Story().kinds(*[seen(books=container(), uses={7: MIB}, sights=(whole,), running=both)] * 5) == [set()] * 5


def test_a_container_that_the_broker_lost_is_told_and_not_stopped() -> None:
    lost = seen(running={KEY: True}, folders=frozenset({KEY}))
    story = Story()
    assert story.kinds(lost, lost, lost)[-1] == {"ContainerWithoutRow"}
    assert not any(one.stops for one in story.then(lost).findings)
    assert Story().kinds(*[seen(running={KEY: False}, folders=frozenset({KEY}))] * 5) == [set()] * 5


def test_rows_of_processes_that_are_gone_are_told() -> None:
    ghost = seen(books=container(row(7, MIB, connected=False, state="detached")), gone=frozenset({7}))
    assert Story().kinds(*[ghost] * 6)[-1] == {"RowWithoutProcess"}
    dead = seen(books=container(row(7, MIB, connected=False, state="dead")))
    assert Story().kinds(*[dead] * 6)[-1] == {"RowWithoutProcess"}
    held = seen(books=container(row(7, MIB, connected=False, state="dead")), uses={7: MIB})
    assert Story().kinds(*[held] * 6) == [set()] * 6, "the card shows it still"


# ---- Budgets ---------------------------------------------------------------------------------------------------------

POD_BUDGET = BudgetName("pod")


def sharing(*rows: ProcessFacts, other: tuple[ProcessFacts, ...] = ()) -> tuple[ContainerFacts, ContainerFacts]:
    """Two containers with one budget of 1 GiB."""
    return container(*rows, budget=POD_BUDGET), container(*other, key=OTHER_KEY, budget=POD_BUDGET)


def test_what_containers_of_a_budget_hold_together_may_not_be_beyond_its_limit() -> None:
    rows = row(7, 900 * MIB), row(8, 500 * MIB, key=OTHER_KEY)
    sights = sight(7), sight(8, key=OTHER_KEY)
    within = seen(books=sharing(rows[0], other=rows[1:]), uses={7: 600 * MIB, 8: 400 * MIB}, sights=sights)
    assert Story().kinds(*[within] * 3) == [set()] * 3
    alone = (container(rows[0]), container(rows[1], key=OTHER_KEY))
    apart = seen(books=alone, uses={7: 900 * MIB, 8: 500 * MIB}, sights=sights)
    assert Story().kinds(*[apart] * 3) == [set()] * 3


@pytest.mark.parametrize(("beyond", "key"), [(7, KEY), (8, OTHER_KEY)])
def test_of_a_budget_the_container_is_stopped_whose_process_went_beyond_what_it_was_lent(
    beyond: int, key: ContainerKey
) -> None:
    """The other one has more processes, and so more contexts; the ledger has seen what was taken past the library."""
    extra = {7: 300 * MIB, 8: 300 * MIB, 9: 300 * MIB, 10: 300 * MIB, beyond: 900 * MIB}
    lent = dict.fromkeys(extra, 50 * MIB)
    owners = {7: KEY, 8: OTHER_KEY, 9: KEY if beyond == 8 else OTHER_KEY, 10: KEY if beyond == 8 else OTHER_KEY}
    rows = [row(pid, lent[pid], overhead=extra[pid], key=owners[pid]) for pid in extra]
    books = sharing(
        *(each for each in rows if each.key == KEY), other=tuple(each for each in rows if each.key == OTHER_KEY)
    )
    uses = {pid: lent[pid] + extra[pid] for pid in extra}
    one = seen(books=books, uses=uses, sights=tuple(sight(pid, key=owners[pid]) for pid in extra))
    story = Story()
    (found,) = [story.then(one) for _ in range(2)][-1].findings
    assert (found.kind, found.subject) == ("BytesBeyondLimit", key)


def test_a_container_stays_in_the_books_while_its_dead_weigh_on_a_budget_that_others_use() -> None:
    ended = sharing(row(7, MIB, state="dead", connected=False), other=(row(8, MIB, key=OTHER_KEY),))
    held = seen(books=ended, uses={7: MIB, 8: MIB}, running={OTHER_KEY: True})
    story = Story()
    assert forgotten(story, seen(books=ended, running={KEY: True, OTHER_KEY: True}), *[held] * 5) == [()] * 6
    both = seen(books=ended[0], uses={7: MIB}, running={})
    assert forgotten(story, both) == [(KEY,)], "the other is gone too"
    free = seen(books=sharing(), running={OTHER_KEY: True})
    assert forgotten(Story(), seen(books=sharing(), running={KEY: True, OTHER_KEY: True}), free, free)[-1] == (KEY,)


# ---- Forgotten containers --------------------------------------------------------------------------------------------

GONE = seen(books=container(), running={})


def forgotten(story: Story, *rounds: Round) -> list[tuple[str, ...]]:
    return [story.then(one).forget for one in rounds]


def test_a_container_that_was_listed_and_is_not_any_more_is_forgotten() -> None:
    assert forgotten(Story(), NOTHING, GONE, GONE) == [(), (), (KEY,)]


def test_a_container_that_has_ended_and_is_listed_stays() -> None:
    assert forgotten(Story(), *[seen(books=container(), running={KEY: False})] * 5) == [()] * 5


def test_a_container_that_is_prepared_and_not_created_yet_has_time() -> None:
    story = Story()
    assert forgotten(story, *[GONE] * 149) == [()] * 149
    assert forgotten(story, GONE, GONE)[-1] == (KEY,)


def test_nobody_is_forgotten_while_the_runtime_is_away() -> None:
    away = seen(books=container(), runtime_away=True)
    assert forgotten(Story(), NOTHING, *[away] * 500) == [()] * 501


def test_an_absence_is_not_forgotten_while_the_runtime_is_away() -> None:
    away = seen(books=container(), runtime_away=True)
    assert forgotten(Story(), NOTHING, GONE, away, GONE)[-1] == (KEY,)


def test_whoever_has_a_living_process_is_not_forgotten() -> None:
    alive = seen(books=container(row(7, MIB)), running={}, uses={7: MIB}, sights=(sight(7),))
    assert forgotten(Story(), NOTHING, *[alive] * 300) == [()] * 301


def test_what_is_gone_leaves_nothing_in_memory() -> None:
    story = Story()
    for one in (HONEST, WITHOUT_LIBRARY, COVERED, GONE, GONE):
        story.then(one)
    story.then(seen(running={}))
    assert story.memory == Memory(violations={}, bounds=Bounds(), absent={}, listed=frozenset())


# ---- Messages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [WITHOUT_LIBRARY, COVERED, BEYOND_LEDGER, BEYOND_LIMIT, WITHOUT_ROW, NOBODY])
def test_a_finding_is_one_sentence_that_stays_the_same(wrong: Round) -> None:
    story = Story()
    told = [one for each in [wrong] * 6 for one in story.then(each).findings]
    assert len({one.sentence for one in told}) == 1
    assert told[0].sentence.isprintable()
    assert told[0].sentence[0].islower()


def test_only_containers_are_stopped_and_only_for_limits_that_are_not_in_force() -> None:
    kinds: set[type[Finding]] = {Finding, OfContainer, *Finding.__subclasses__(), *OfContainer.__subclasses__()}
    stopping = {one.__name__ for one in kinds if one.stops}
    assert stopping == {
        "ProcessWithoutLibrary",
        "ProcessWithoutRow",
        "CoveredMounts",
        "TooMuchToRead",
        "BytesBeyondLedger",
        "BytesBeyondLimit",
        "DoesNotMove",
    }
    assert all(issubclass(one, OfContainer) for one in kinds if one.stops)
