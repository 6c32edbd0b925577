"""What goes wrong with an advertiser and its peers, and how soon the truth is told once the cause is gone.

In each of them the node changes while no one can tell, so that what stands is wrong until the advertiser mends it.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from bench.advertising.place import FIRST, LAST, SECOND, Node, Right, all_ok, health_of, is_lost
from partage_plugins.vocabulary.inventory import Inventory

_LATEST_S: Final = 0.5
"""After a change an advertiser is killed at any moment up to this."""


@dataclass(frozen=True)
class Trouble:
    name: str
    begin_and_end: Callable[[Node, float], float]
    """Told how long it is to last at least; answers when the cause was gone."""
    right: Right


def recoveries_s(node: Node, trouble: Trouble, rounds: int, *, lasts_s: float) -> Sequence[float]:
    """Of each round: seconds from the end of the cause until the annotation is right."""
    found: list[float] = []
    for _ in range(rounds):
        node.begin_anew()
        ended = trouble.begin_and_end(node, lasts_s)
        found.append(node.seen(trouble.right, since=ended).annotation_s)
        for card in (0, 1):
            node.tell(f"restore {card}")
        node.seen(all_ok)
    return found


def _killed(node: Node, _: float) -> float:
    """At any moment of telling a change; the next change is not seen."""
    node.tell("lose 0")
    time.sleep(random.uniform(0, _LATEST_S))  # noqa: S311
    node.advertiser.kill()
    node.tell("lose 1")
    node.advertiser.start()
    return time.monotonic()


def _child_killed(node: Node, _: float) -> float:
    os.kill(node.child_pid, signal.SIGKILL)
    node.tell("lose 0")
    return time.monotonic()


def _hangs(node: Node, lasts_s: float) -> float:
    node.tell("nvml hang")
    node.seen(is_lost(LAST))
    time.sleep(lasts_s)
    node.tell("lose 0")
    node.tell("nvml resume")
    return time.monotonic()


def _unloaded(node: Node, lasts_s: float) -> float:
    node.driver.kill()
    node.seen(is_lost(FIRST))
    time.sleep(lasts_s)
    node.driver.start()
    node.driver.wait_ready()
    return time.monotonic()


def _unreachable(node: Node, lasts_s: float) -> float:
    with _away(node):
        node.tell("lose 0")
        time.sleep(lasts_s)
    return time.monotonic()


def _killed_unreachable(node: Node, lasts_s: float) -> float:
    with _away(node):
        node.advertiser.kill()
        node.tell("lose 0")
        node.advertiser.start()
        time.sleep(lasts_s)
    return time.monotonic()


def _hangs_unreachable(node: Node, lasts_s: float) -> float:
    with _away(node):
        node.tell("nvml hang")
        time.sleep(lasts_s)
        node.tell("lose 0")
        node.tell("nvml resume")
    return time.monotonic()


@contextmanager
def _away(node: Node) -> Generator[None]:
    server = node.rig.control.apiserver
    server.kill()
    yield
    server.start()
    server.wait_ready()


def _first_alone_lost(inventory: Inventory) -> bool:
    return is_lost(FIRST)(inventory) and health_of(inventory, LAST) == "ok"


def _two_lost(inventory: Inventory) -> bool:
    return is_lost(FIRST)(inventory) and is_lost(SECOND)(inventory)


TROUBLES: Final = (
    Trouble("kill -9", _killed, _two_lost),
    Trouble("kill -9 of the process that asks NVML", _child_killed, is_lost(FIRST)),
    Trouble("NVML hangs", _hangs, _first_alone_lost),
    Trouble("the driver is unloaded", _unloaded, all_ok),
    Trouble("the API server is away", _unreachable, is_lost(FIRST)),
    Trouble("the API server is away, and kill -9", _killed_unreachable, is_lost(FIRST)),
    Trouble("the API server is away, and NVML hangs", _hangs_unreachable, _first_alone_lost),
)
