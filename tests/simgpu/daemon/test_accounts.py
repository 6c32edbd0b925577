"""Accounts are exact to the byte for any sequence of requests, with processes killed or stopped at any time."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.daemon.orders import CARDS, accounts, asked, compare, order
from simgpu.daemon.users import User, small_node, totals, until
from simgpu.daemon.wire import BLOCK, MIB, Ask

pytestmark = pytest.mark.slow
_PROCESSES = 6
_OPERATIONS = 1500


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    with small_node(tmp_path, CARDS) as node:
        yield node


def test_thousands_of_operations_with_kills_and_stops_leave_nothing_unaccounted(node: SimulatedNode) -> None:
    chance, model = random.Random(1), accounts()  # noqa: S311 - it makes a story, no secrets
    users = [User(node.root) for _ in range(_PROCESSES)]
    stopped: set[int] = set()
    kills = 0
    try:
        for _ in range(_OPERATIONS):
            who = chance.randrange(_PROCESSES)
            fate = chance.random()
            if fate < 0.02:
                kills += 1
                stopped.discard(who)
                _killed(node, users, who, midway=chance.random() < 0.5)
                model.ended(who)
                node.control("peaks reset")  # its last request may have been processed, or not
                model.forget_peaks()
            elif fate < 0.06 and who not in stopped:
                users[who].send(signal.SIGSTOP)
                stopped.add(who)
            else:
                if who in stopped:
                    users[who].send(signal.SIGCONT)
                    stopped.discard(who)
                asked(model, users, who, *order(model, chance.randrange))
            compare(model, node, users)
        assert kills > _OPERATIONS // 100
    finally:
        for user in users:
            user.kill()
    until(lambda: totals(node) == {"cards": CARDS, "processes": 0, "clients": 0, "pieces": 0, "kept": 0})
    model.forget_peaks()
    for who in range(_PROCESSES):
        model.ended(who)
    assert [model.used(card) for card in range(CARDS)] == [0] * CARDS


def _killed(node: SimulatedNode, users: list[User], who: int, *, midway: bool) -> None:
    """End the process, perhaps during a request, and replace it by another one."""
    if midway:
        users[who].begin(Ask.TAKE, kind=BLOCK, size=MIB)
    users[who].kill()
    until(lambda: totals(node)["processes"] == _PROCESSES - 1)
    users[who] = User(node.root)
