"""How long things take and may take. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MS: Final = 1_000_000
SECOND: Final = 1_000_000_000
NEVER: Final = 1 << 80
"""Later than any clock shows."""


@dataclass(frozen=True, slots=True)
class Timing:
    """All in nanoseconds; the defaults are what was measured to be good."""

    quantum_ns: int = 20 * MS
    """Of a lease while others want the card."""
    min_run_ns: int = 5 * MS
    """A lease lasts at least so long, whichever process wakes up."""
    drain_least_ns: int = 2 * MS
    """So long is waited at least for work that is under way when a lease ends."""
    drain_quanta: int = 8
    """And so many quanta at most: several processes may each have a long kernel under way."""
    credit_ns: int = 300 * MS
    """Who comes back from idleness is ahead of the others by so much at most, in time divided by share."""
    ceiling_on_ns: int = 20 * MS
    """Who runs below a ceiling runs so long at a time: shorter turns cost more than they give."""
    ceiling_most_ns: int = 100 * MS
    """And what it could not run because of others it may make up for, so much at most."""
    gang_reopen_ns: int = 2 * MS
    """All cards of a gang open once more for so long where one of them waits for launches on another."""
    renew_ns: int = 2 * MS
    """So long before its end a lease that would go to the same container again is lengthened."""
    speaks_ns: int = MS
    """So long after its end a lease is left alone: mostly its processes say by then that their work is done."""
    comes_back_ns: int = MS * 3 // 10
    """So long the card is kept for a container that was not idle when its turn ended, and is still first."""
    longest_wait_ns: int = 5 * SECOND
    """After that a container with a share gets its turn whatever it owes."""
