"""What of all that is charged to a container may be free: by the word of its processes, by a sample, by a recall.

Pure; each answer looks at every process of the container.
"""

from __future__ import annotations

from collections.abc import Iterator

from partage_isolation.broker.accounts import Account
from partage_isolation.broker.containers import Container, Process
from partage_isolation.broker.states import SPEAKING, State


def believed(container: Container, card: int) -> int:
    """What is charged, less what living processes say to have freed: if it is true, it is lent again on demand."""
    freed = sum(account.unproved for process, account in container.accounts(card) if process.state in SPEAKING)
    return container.charged(card) - freed


def provable(container: Container, card: int) -> int:
    """What a sample may show to be free."""
    return sum(_provable(process, account) for process, account in container.accounts(card))


def _provable(process: Process, account: Account) -> int:
    if process.state is State.DEAD:
        return account.total
    is_measured = process.state is State.LIVE and not process.is_silent  # it must say what it uses
    if is_measured and (account.is_made or account.falls):
        return account.unproved + account.fixed
    return account.unproved


def lenders(container: Container, card: int, asker: Process) -> Iterator[Process]:
    """Those that may have more than they use, and would say so."""
    for process, account in container.accounts(card):
        is_there = process.state is State.LIVE and not process.is_silent and not process.is_waiting
        if is_there and account.lent and process is not asker:
            yield process
