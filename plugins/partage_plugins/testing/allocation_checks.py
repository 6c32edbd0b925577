"""Checks of an owner's scheduler side: it grants what it reports as free, and nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

import msgspec

from partage_plugins.api.allocation import Allocation
from partage_plugins.api.kinds import PROMISES
from partage_plugins.api.names import Slot
from partage_plugins.api.pods import Pod
from partage_plugins.errors import Refused
from partage_plugins.testing.check import Broken, Case, check, hold
from partage_plugins.testing.scheduler_stage import BARE, SchedulerStage

_MOST_PODS: Final = 10_000


@check("scheduler", "kind")
def allocates_where_it_fits(case: Case) -> None:
    """Wherever a pod fits, exactly the containers with a request get grants, which the pod's text preserves."""
    stage = SchedulerStage(case).told()
    for request in map(stage.framework.requests, case.subject.pods):
        for slot in stage.fitting(request):
            stage.allocation(request, slot)


@check("scheduler", "kind")
def allocating_changes_nothing(case: Case) -> None:
    """Repeated calls to partage_allocate return the same grants: nothing is counted before `partage_take`."""
    stage = SchedulerStage(case).told()
    for request in map(stage.framework.requests, case.subject.pods):
        before = stage.answers(request)
        for slot in stage.fitting(request):
            grants, again = (stage.allocation(request, slot).containers for _ in range(2))
            hold(grants == again, f"partage_allocate gives {grants!r:.200}, then {again!r:.200}")
        differing = before.difference(stage.answers(request))
        hold(not differing, f"partage_allocate changes the {differing} of the same request")


@check("scheduler", "kind")
def refuses_where_it_does_not_fit(case: Case) -> None:
    """For a node on which the pod does not fit, partage_allocate raises `Refused`."""
    stage = SchedulerStage(case).told((BARE,))
    for request in map(stage.framework.requests, case.subject.pods):
        try:
            grants = stage.framework.allocate(request, Slot(0))
        except Refused:
            continue
        raise Broken(f"partage_allocate gives {grants!r:.200} on a node that has nothing of its kind")


@check("scheduler", "kind")
def fills_up(case: Case) -> None:
    """Pods can be placed one after another wherever it reports that they fit, until it reports that none does."""
    for pods in _mixtures(case):
        stage = SchedulerStage(case).told()
        for _ in _filled(stage, pods):
            pass


@check("scheduler", "kind")
def gives_no_whole_device_twice(case: Case) -> None:
    """A grant without promises is a whole device, so no two pods ever hold it on one node."""
    kind = SchedulerStage(case).kind
    for pods in _mixtures(case):
        stage = SchedulerStage(case).told()
        held: set[tuple[Slot, bytes]] = set()
        parts = {slot: inventory.part(kind) for slot, _, inventory in stage.nodes()}
        for slot, allocation in _filled(stage, pods):
            for grants in allocation.of(kind).values():
                whole = [grant for grant in grants if not stage.promised(grant, parts[slot])]
                for holding in ((slot, msgspec.json.encode(grant)) for grant in whole):
                    hold(holding not in held, f"two pods hold {holding[1].decode()}, which promises nothing to others")
                    held.add(holding)


@check("scheduler", "kind")
def promises_what_it_may(case: Case) -> None:
    """Each grant's promises are a subset of the defined ones, also where the inventory lacks the kind."""
    stage = SchedulerStage(case).told()
    kind = stage.kind
    for request in map(stage.framework.requests, case.subject.pods):
        for slot, _, inventory in stage.nodes():
            if slot not in stage.fitting(request):
                continue
            for grant in chain.from_iterable(stage.allocation(request, slot).of(kind).values()):
                for part in (inventory.part(kind), None):
                    promised = stage.promised(grant, part)
                    allowed = isinstance(promised, frozenset) and promised <= PROMISES
                    hold(allowed, f"promises of kind {kind.name} gives {promised!r}, not some of {sorted(PROMISES)}")


def _mixtures(case: Case) -> Iterator[tuple[Pod, ...]]:
    """Each pod alone, then all in turn."""
    pods = case.subject.pods
    yield from ((pod,) for pod in pods)
    if len(pods) > 1:
        yield pods


def _filled(stage: SchedulerStage, pods: tuple[Pod, ...]) -> Iterator[tuple[Slot, Allocation]]:
    """Places pods in turn until none of them fits; yields each node and allocation."""
    yield from stage.filled(pods, _MOST_PODS)
    room = len(stage.allocations()) == _MOST_PODS
    hold(not room, f"after {_MOST_PODS} pods there is still room; does partage_take count them?")
