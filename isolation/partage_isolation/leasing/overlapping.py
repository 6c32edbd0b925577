"""Who pays for a card's time while work of several containers may run on it. Pure.

A card divides its time among processes, not containers: whoever has four of them there gets four parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from partage_isolation.leasing.seats import Seat

Running = tuple[Seat, int]
"""A container, and how many of its processes may have work on the card."""


def runners(behind: Sequence[Seat], holder: Seat | None) -> list[Running]:
    """The holder, and those with silent members that are not stopped."""
    found = [(seat, seat.still_running()) for seat in behind if seat is not holder]
    if holder:
        found.append((holder, max(1, holder.running())))
    return [each for each in found if each[1]]


def divided(amount: int, among: Sequence[Running]) -> list[tuple[Seat, int]]:
    """All of it, by processes."""
    whole = sum(processes for _, processes in among)
    parts: list[tuple[Seat, int]] = []
    before = 0
    for seat, processes in among:
        after = before + processes
        parts.append((seat, amount * after // whole - amount * before // whole))
        before = after
    return parts
