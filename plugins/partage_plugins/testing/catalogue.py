"""Which checks there are, and which of them apply to a subject."""

from __future__ import annotations

from collections.abc import Iterator

from partage_plugins.testing import (
    adjustment_checks,
    allocation_checks,
    answer_checks,
    both_sides_checks,
    count_checks,
    life_checks,
    request_checks,
    room_checks,
)
from partage_plugins.testing.check import Check
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
        yield from both_sides_checks.CHECKS


def _of_scheduler(*, owns: bool) -> Iterator[Check]:
    yield from request_checks.CHECKS
    yield from answer_checks.CHECKS
    yield from room_checks.CHECKS
    if owns:
        yield from request_checks.OWNER_CHECKS
        yield from answer_checks.OWNER_CHECKS
        yield from allocation_checks.CHECKS
        yield from count_checks.CHECKS
    yield from request_checks.LAST_CHECKS


def _of_node(*, owns: bool, grants: bool) -> Iterator[Check]:
    yield from life_checks.FIRST_CHECKS
    yield from life_checks.CHECKS
    if owns:
        yield from life_checks.OWNER_CHECKS
    if grants:
        yield from adjustment_checks.CHECKS
    if owns and grants:
        yield from adjustment_checks.OWNER_CHECKS
    yield from life_checks.LAST_CHECKS
