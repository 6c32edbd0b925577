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

    quantum_ns: int = 32 * MS
    """Of a lease while others want the card."""
    min_run_ns: int = 5 * MS
    """A lease lasts at least so long, whichever process wakes up."""
    drain_least_ns: int = 2 * MS
    """Work that is under way when a lease ends has at least so long."""
    drain_quanta: int = 5
    """And so many quanta at most: several processes may each have a long kernel under way."""
    credit_ns: int = 300 * MS
    """A container that was idle is ahead of the others by so much at most, in time divided by share."""
    ceiling_on_ns: int = 20 * MS
    """A container with a ceiling runs so long at a time: shorter turns cost more than they give."""
    ceiling_most_ns: int = 100 * MS
    """It may make up for time that others took, so much at most."""
    gang_reopen_ns: int = 2 * MS
    """Where work on one card of a gang waits for launches on another, all its cards open again for so long."""
    renew_ns: int = 2 * MS
    """A lease that would go to the same container again is lengthened so long before its end."""
    speaks_ns: int = MS
    """A lease is left alone so long after its end: by then its processes have mostly said that their work is done."""
    comes_back_ns: int = MS * 3 // 10
    """The card is kept so long for a container that was not idle when its turn ended, and is still first."""
    longest_wait_ns: int = 5 * SECOND
    """After that a container with a share gets its turn whatever it owes."""
