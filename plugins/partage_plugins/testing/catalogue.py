"""Which checks there are, and which of them apply to a subject."""

from __future__ import annotations

from collections.abc import Iterator

from partage_plugins.testing import (
    both_sides,
    node_adjusting,
    node_living,
    scheduler_allocating,
    scheduler_answering,
    scheduler_counting,
    scheduler_reading,
    scheduler_rooms,
    scheduler_shapes,
    scheduler_sharing,
)
from partage_plugins.testing.checking import Check
from partage_plugins.testing.subject import Subject


def checks_of(subject: Subject) -> dict[str, Check]:
    """The checks that apply, by name, in the order in which they run."""
    return {check.__name__: check for check in _applying(subject)}


def promise_of(check: Check) -> str:
    """What a plugin promises by passing it, in one sentence."""
    return (check.__doc__ or "").strip()


def _applying(subject: Subject) -> Iterator[Check]:
    owns = subject.kind is not None
    if subject.scheduler is not None:
        yield from _of_scheduler(owns=owns)
    if subject.node is not None:
        yield from _of_node(owns=owns, grants=subject.has_grants)
    if subject.scheduler is not None and subject.node is not None and owns:
        yield from both_sides.CHECKS


def _of_scheduler(*, owns: bool) -> Iterator[Check]:
    yield from scheduler_reading.CHECKS
    yield from scheduler_answering.CHECKS
    yield from scheduler_shapes.CHECKS
    yield from scheduler_sharing.CHECKS
    yield from scheduler_rooms.CHECKS
    if owns:
        yield from scheduler_reading.OWNER_CHECKS
        yield from scheduler_answering.OWNER_CHECKS
        yield from scheduler_allocating.CHECKS
        yield from scheduler_counting.CHECKS
    yield from scheduler_reading.LAST_CHECKS


def _of_node(*, owns: bool, grants: bool) -> Iterator[Check]:
    yield from node_living.FIRST_CHECKS
    yield from node_living.CHECKS
    if owns:
        yield from node_living.OWNER_CHECKS
    if grants:
        yield from node_adjusting.CHECKS
    if owns and grants:
        yield from node_adjusting.OWNER_CHECKS
    yield from node_living.LAST_CHECKS
