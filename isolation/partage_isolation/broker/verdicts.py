"""What the ledger answers to a question for memory. Pure."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Protocol

from msgspec import Struct

from partage_isolation.broker.containers import Process
from partage_isolation.broker.wire import Amounts

MIB: Final = 1 << 20
MOST_CREDIT: Final = 32 * MIB
CREDIT_PART: Final = 16
"""Of what is left, a sixteenth may be lent unasked."""
_CREDIT_STEP: Final = 2 * MIB


class Patience(IntEnum):
    """What a question may still wait for."""

    NONE = 0
    PROOF = 1
    """A sample, which may show that more is free."""
    ALL = 2
    """And that siblings give back what they don't use."""


class Lent(Struct, frozen=True):
    """It may hold so much from now on."""

    lent: int


class Refused(Struct, frozen=True):
    """The limit does not allow it; it may hold so much, as before."""

    lent: int


class Park(Struct, frozen=True):
    """It may become possible in a moment: once those gave back what they don't use, and a sample was taken."""

    lent: int
    recall: tuple[Process, ...]


class NoRoom(Struct, frozen=True):
    """There is no row for another process."""


Verdict = Lent | Refused | Park | NoRoom


class Ask(Protocol):
    """A question for memory; without a word on patience, with all of it."""

    def __call__(
        self, process: Process, card: int, amounts: Amounts, *, again: bool, patience: Patience = ...
    ) -> Verdict:
        """What the ledger says of it; `again`: the same call of a program asked before, and was refused."""
        ...


class Decide(Protocol):
    """A question, as it can be asked again."""

    def __call__(self, *, patience: Patience) -> Verdict:
        """What the ledger says of it now."""
        ...


def credit_of(left: int) -> int:
    """What is lent unasked where so much is left: nothing near the limit."""
    return min(MOST_CREDIT, left // CREDIT_PART) // _CREDIT_STEP * _CREDIT_STEP
