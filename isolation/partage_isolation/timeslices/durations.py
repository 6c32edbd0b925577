"""Durations that the scheduling of time slices uses. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MS: Final = 1_000_000
SECOND: Final = 1_000_000_000
NEVER: Final = 1 << 80
"""Later than any clock value."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Timing parameters, all in nanoseconds; the defaults were chosen by measurement."""

    quantum_ns: int = 32 * MS
    """Length of a time slice while other containers want the card."""
    min_run_ns: int = 5 * MS
    """Minimum length of a time slice, even if another process wakes up."""
    drain_least_ns: int = 2 * MS
    """Minimum time that work in flight has to finish after a time slice ends."""
    drain_quanta: int = 5
    """The maximum for the same, in quanta: each of several processes may have a long kernel in flight."""
    credit_ns: int = 300 * MS
    """Largest head start of a container that was idle, in time divided by share."""
    ceiling_on_ns: int = 20 * MS
    """Minimum length of a time slice below a ceiling: shorter ones cost more than they give."""
    ceiling_most_ns: int = 100 * MS
    """Most run time that a container with a ceiling can save up while other containers run."""
    gang_reopen_ns: int = 2 * MS
    """How long a gang's cards reopen together if work on one of them waits for launches on another."""
    renew_ns: int = 2 * MS
    """How long before its end a time slice is renewed if the same container would be picked again."""
    speaks_ns: int = MS
    """Delay from the end of a time slice to the first check: by then most processes have reported their drain."""
    comes_back_ns: int = MS * 3 // 10
    """How long the card is kept for a container that was not idle when its time slice ended and still ranks first."""
    longest_wait_ns: int = 5 * SECOND
    """After this wait a container with a share is picked next, regardless of its debt."""
