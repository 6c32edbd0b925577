"""When a refusal is confirmed: at some moment since the request, total usage left no room for it. Pure.

The broker knows others' usage only from reports made at different moments. A sum of such figures can exceed the real
maximum: one process frees, after its report, what another takes before its own. So others report in rounds, and a round
counts in which nobody can have taken anything:

- no process was lent more during it, and
- no process had credit when it began, which it could use without asking. A process that gave all back in an earlier
  round has none until some is lent again, for from then on it reports immediately what it frees. It reports late while
  a request of its own is pending, and could use it: then the number of its changes must have stayed the same.

A process that is stopped by a signal neither takes nor frees, and is left out.

In such a round usage only falls. What is charged at its end, and was reported since it began, was in use when it began,
or until the first of those frees that are not known yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from partage_isolation.ledger.budget import Budget, Process, State
from partage_isolation.ledger.quota_accounting import holders


@dataclass(frozen=True)
class RoundStart:
    growth: int
    is_dry: bool
    changes: Mapping[Process, int]
    """Of processes with a pending request."""
    stopped: AbstractSet[Process]


def begin(budget: Budget, card: int, asker: Process, stopped: AbstractSet[Process] = frozenset()) -> RoundStart:
    """Begin a round; `stopped` are the other processes that are stopped until its end."""
    others = [each for each in holders(budget, card, asker) if each[0] not in stopped]
    return RoundStart(
        budget.charges.growth(card),
        all(account.is_dry for _, account in others),
        {process: account.changes for process, account in others if process in budget.waiting},
        stopped,
    )


def is_sure(budget: Budget, card: int, began: RoundStart) -> bool:
    """Whether a round in which all others reported, and which still left no room, confirms the refusal."""
    is_alone = budget.charges.growth(card) == began.growth
    now = {process: account.changes for process, account in budget.accounts(card)}
    are_still = all(now.get(process, changes) == changes for process, changes in began.changes.items())
    return is_alone and began.is_dry and are_still and not _is_unknown(budget, card, began.stopped)


def _is_unknown(budget: Budget, card: int, stopped: AbstractSet[Process]) -> bool:
    """More may be charged than is held, until a sample shows it: unmeasured contexts, and dead processes.

    A stopped process's context can't be measured, so its charge can't be lowered either.
    """
    return any(
        process.state is State.DEAD or (account.is_made and process not in stopped)
        for process, account in budget.accounts(card)
    )
