"""When a refusal is sure: at some moment since it was asked for, all together used too much for it. Pure.

What others use the broker knows only as it was when they said so, each at another moment. A sum of such figures can be
more than there ever was: one frees, after it was heard, what another takes before it is. So others are heard in rounds,
and a round is believed in which nobody can have taken anything:

- nobody was lent more while it lasted, and
- nobody had credit when it began, to be spent without a word. Who gave all back in an earlier round has none until some
  is lent again, for from then on it says at once what it frees. It says so late where a question of its own is waiting,
  and could spend it: then the number of its changes must have stayed the same.

Who is stopped by a signal neither takes nor frees, and is left out.

In such a round use only falls. What is charged at its end, and each has said since it began, was in use when it began,
or until the first of those frees that are not known yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from partage_isolation.ledger.budget import Budget, Process, State
from partage_isolation.ledger.loans import holders


@dataclass(frozen=True)
class RoundStart:
    growth: int
    is_dry: bool
    changes: Mapping[Process, int]
    """Of those with a question of their own."""
    stopped: AbstractSet[Process]


def begin(budget: Budget, card: int, asker: Process, stopped: AbstractSet[Process] = frozenset()) -> RoundStart:
    """`stopped`: those of the others that are, and still will be at the end."""
    others = [each for each in holders(budget, card, asker) if each[0] not in stopped]
    return RoundStart(
        budget.charges.growth(card),
        all(account.is_dry for _, account in others),
        {process: account.changes for process, account in others if process in budget.waiting},
        stopped,
    )


def is_sure(budget: Budget, card: int, began: RoundStart) -> bool:
    """At the end of one in which all others were heard, and still there is no room."""
    is_alone = budget.charges.growth(card) == began.growth
    now = {process: account.changes for process, account in budget.accounts(card)}
    are_still = all(now.get(process, changes) == changes for process, changes in began.changes.items())
    return is_alone and began.is_dry and are_still and not _is_unknown(budget, card, began.stopped)


def _is_unknown(budget: Budget, card: int, stopped: AbstractSet[Process]) -> bool:
    """More may be charged than there is, until a sample shows it: contexts not measured yet, and the dead.

    A context of a process that is stopped can't be measured: what is charged for it is out of reach.
    """
    return any(
        process.state is State.DEAD or (account.is_made and process not in stopped)
        for process, account in budget.accounts(card)
    )
