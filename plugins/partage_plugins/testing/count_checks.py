"""Checks of a scheduler plugin's accounting: it is right after any sequence of calls in any order.

CPU and memory may be updated at any time, and the host alone decides by them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import cycle, islice
from typing import Final

from msgspec.structs import replace

from partage_plugins.api.allocation import Allocation
from partage_plugins.api.kinds import AnyKind
from partage_plugins.api.names import BudgetName, ContainerName, Slot, grantee_of
from partage_plugins.api.pods import BudgetUse, PodRequest, Resources
from partage_plugins.testing import examples
from partage_plugins.testing.check import Case, check, hold
from partage_plugins.testing.neighbours import NEIGHBOUR, NeighbourGrant
from partage_plugins.testing.scheduler_stage import Answers, SchedulerStage

_SOME: Final = 48
_TOTAL: Final = Resources(cpu_milli=64_000, memory_bytes=256 << 30)
_ROOMS: Final = (
    _TOTAL,
    Resources(cpu_milli=1, memory_bytes=_TOTAL.memory_bytes),
    Resources(cpu_milli=_TOTAL.cpu_milli, memory_bytes=1),
    Resources(),
)
"""Free CPU and memory of a node, in turn."""
_BUDGET: Final = BudgetName("together")
_USERS: Final = tuple(map(ContainerName, ("one", "other", "third")))

Taken = list[tuple[Slot, Allocation]]


@check("scheduler", "kind")
def giving_back_restores(case: Case) -> None:
    """When all allocations are given back, in any order, its results are the same as at first."""
    for name, order in _ORDERS:
        stage = SchedulerStage(case).told()
        before = _all_answers(stage)
        for slot, allocation in order(_filled(stage)):
            stage.give_back(slot, allocation)
        _check_same(before, stage, f"after all was given back {name}")


@check("scheduler", "kind")
def giving_back_undoes_the_last(case: Case) -> None:
    """Giving back the last allocation restores the previous results, step by step."""
    stage = SchedulerStage(case).told()
    first = _all_answers(stage)
    before = [first, *(_all_answers(stage) for _ in stage.filled(case.subject.pods, _SOME))]
    for slot, allocation in reversed(stage.allocations()):
        stage.give_back(slot, allocation)
        _check_same(before[len(stage.allocations())], stage, "after the last allocation was given back")


@check("scheduler", "kind")
def replay_restores(case: Case) -> None:
    """A new instance with the same nodes and allocations, in another order, returns the same results as the old one."""
    old = SchedulerStage(case).told()
    _half_filled(old)
    new = SchedulerStage(case)
    for slot, _, inventory in old.nodes():
        new.node_added(slot, inventory)
    for slot, allocation in _shuffled(old.allocations()):
        new.take(slot, allocation)
    _check_same(_all_answers(old), new, "a new instance told of the same nodes and allocations")


@check("scheduler", "kind")
def instances_share_nothing(case: Case) -> None:
    """A new instance does not see what an old one took, nor does the old one see the new one's nodes."""
    old = SchedulerStage(case).told()
    first = _all_answers(old)
    _filled(old)
    before = _all_answers(old)
    _check_same(first, SchedulerStage(case).told(), "in a new instance told of the same nodes")
    _check_same(before, old, "after a new instance was told of nodes")


@check("scheduler", "kind")
def forgets_removed_nodes(case: Case) -> None:
    """When a removed node's slot is reused, nothing of its devices and allocations is left."""
    stage = SchedulerStage(case).told()
    _filled(stage)
    for slot, _, _ in stage.nodes():
        stage.node_removed(slot)
    others = stage.inventories[::-1]
    fresh = SchedulerStage(case).told(others)
    _check_same(_all_answers(fresh), stage.told(others), "with other nodes in the slots of removed ones")


@check("scheduler", "kind")
def follows_a_changed_inventory(case: Case) -> None:
    """A node that is removed, added again and has its allocations taken again has the same results as before."""
    stage = SchedulerStage(case).told()
    _half_filled(stage)
    before = _all_answers(stage)
    for slot, _, inventory in stage.nodes():
        taken = [allocation for where, allocation in stage.allocations() if where == slot]
        stage.node_removed(slot)
        stage.node_added(slot, inventory)
        for allocation in taken:
            stage.take(slot, allocation)
    _check_same(before, stage, "after a node was removed, added and its allocations taken again")


@check("scheduler", "kind")
def counts_beside_other_kinds(case: Case) -> None:
    """Grants of other kinds in an allocation do not change how it counts its own."""
    plain, mixed = SchedulerStage(case).told(), SchedulerStage(case).told()
    before = _all_answers(mixed)
    for slot, allocation in _half_filled(plain):
        mixed.take(slot, _with_others(allocation))
    _check_same(_all_answers(plain), mixed, "after allocations that also hold another kind's grants")
    for slot, allocation in mixed.allocations():
        mixed.give_back(slot, allocation)
    _check_same(before, mixed, "after allocations that also hold another kind's grants were given back")


@check("scheduler", "kind")
def counts_a_budget_once(case: Case) -> None:
    """A budget is granted, taken and given back like one container with the same request, for any number of users."""
    alone, shared = SchedulerStage(case).told(), SchedulerStage(case).told()
    before = _all_answers(shared)
    some = enumerate(islice(cycle(case.subject.pods), _SOME))
    requests = (alone.framework.requests(examples.like(pod, number)) for number, pod in some)
    for one in (_of_one(request, alone.kind) for request in requests):
        if one is None:
            continue
        budget = _as_budget(one)
        fitting = alone.fitting(one)
        hold(shared.fitting(budget) == fitting, "a budget fits on other nodes than a container that asks for the same")
        for slot in fitting[:1]:
            given, together = alone.allocation(one, slot), shared.allocation(budget, slot)
            alone.take(slot, given)
            shared.take(slot, together)
            _check_same(_all_answers(alone), shared, f"after a budget was taken that {len(_USERS)} containers use")
    for slot, allocation in shared.allocations():
        shared.give_back(slot, allocation)
    _check_same(before, shared, "after all budgets were given back")


@check("scheduler")
def leaves_rooms_to_the_host(case: Case) -> None:
    """A shortage of CPU or memory never changes partage_fits: the host checks them, a plugin only prefers by them."""
    stage = SchedulerStage(case).told()
    requests = [stage.framework.requests(pod) for pod in case.subject.pods]
    before = [stage.verdicts(request) for request in requests]
    for free in _ROOMS:
        _tell(stage, free)
        for request, verdicts in zip(requests, before, strict=True):
            hold(stage.verdicts(request) == verdicts, "partage_fits says no where only CPU and memory are short")
            stage.scores(request, stage.fitting(request))


@check("scheduler")
def counts_whenever_told_of_rooms(case: Case) -> None:
    """Its results do not depend on when and how often it is given nodes' CPU and memory."""
    early, late = SchedulerStage(case).told(), SchedulerStage(case).told()
    for free in _ROOMS:
        _tell(early, free)
    if case.subject.kind is not None:
        list(early.filled(case.subject.pods, len(case.subject.pods)))
    for slot, allocation in early.allocations():
        late.take(slot, allocation)
    _tell(late, _ROOMS[-1])
    _check_same(_all_answers(early), late, "told of rooms after allocations, not before")


@check("scheduler")
def forgets_rooms_of_removed_nodes(case: Case) -> None:
    """A node whose CPU and memory are not given counts as unlimited, even if its slot was another node's."""
    stage = SchedulerStage(case).told()
    _tell(stage, Resources())
    for slot, _, inventory in stage.nodes():
        stage.node_removed(slot)
        stage.node_added(slot, inventory)
    _check_same(
        _all_answers(SchedulerStage(case).told()), stage, "after its node was removed and added again without a room"
    )


def _tell(stage: SchedulerStage, free: Resources) -> None:
    for slot, _, _ in stage.nodes():
        stage.node_room(slot, _TOTAL, free)


def _of_one(request: PodRequest, kind: AnyKind) -> PodRequest | None:
    """The request of the first app container that requests this kind, alone; None if there is none."""
    asking = (each for each in request.containers if each.role == "app" and each.of(kind) is not None)
    first = next(asking, None)
    return None if first is None else replace(request, containers=(first,), uses=())


def _as_budget(request: PodRequest) -> PodRequest:
    """The same request as a budget that several containers use."""
    (one,) = request.containers
    uses = (BudgetUse(name, kind, _BUDGET) for name in _USERS for kind, _ in one.asks)
    return replace(request, containers=(replace(one, name=grantee_of(_BUDGET)),), uses=tuple(sorted(uses)))


def _all_answers(stage: SchedulerStage) -> dict[str, Answers]:
    """The plugin's results for each pod of the subject."""
    return {str(place): stage.answers(stage.framework.requests(pod)) for place, pod in enumerate(stage.subject.pods)}


def _check_same(before: dict[str, Answers], stage: SchedulerStage, when: str) -> None:
    for place, answers in _all_answers(stage).items():
        differing = before[place].difference(answers)
        pod = stage.subject.pods[int(place)].ref.name
        hold(
            not differing, f"{when}, the {differing} of pod {pod} differ: {before[place]!r:.300}, now {answers!r:.300}"
        )


def _half_filled(stage: SchedulerStage) -> Taken:
    """Places pods in turn and gives every other one back, so that every node has free devices."""
    for slot, allocation in _filled(stage)[::2]:
        stage.give_back(slot, allocation)
    return stage.allocations()


def _filled(stage: SchedulerStage) -> Taken:
    """Places pods in turn and returns all allocations taken then."""
    return list(stage.filled(stage.subject.pods, _SOME))


def _with_others(allocation: Allocation) -> Allocation:
    other = {NEIGHBOUR.name: (NeighbourGrant("n0"),)}
    containers = {name: {**other, **grants} for name, grants in allocation.containers.items()}
    return replace(allocation, containers={ContainerName("neighbour"): other, **containers})


def _shuffled(taken: Taken) -> Taken:
    return random.Random(len(taken)).sample(taken, len(taken))  # noqa: S311  the same at every run


_ORDERS: Final[tuple[tuple[str, Callable[[Taken], Taken]], ...]] = (
    ("in the same order", list),
    ("in reverse", lambda taken: taken[::-1]),
    ("in another order", _shuffled),
)
