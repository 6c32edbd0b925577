"""Containers with several cards get them together, despite others that want one of them."""

from __future__ import annotations

import random
import signal
import struct
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from isolation.timeslices.flood import Flooder
from partage_isolation.library.objects import built
from support.isolated import Isolated, isolated, until
from support.sharing import Running, Sharer, sharing

pytestmark = pytest.mark.slow
MIB = 1 << 20


def test_gangs_killed_and_stopped_at_any_moment_never_wait_for_each_other(place: Isolated) -> None:
    chance = random.Random(7)  # noqa: S311  chooses what happens
    some = [(place.prepare([MIB, MIB], share=250), "gang 2") for _ in range(3)]
    some.append((place.prepare([MIB], share=250), "flood"))
    with ExitStack() as stack:
        there = [stack.enter_context(Flooder(*each)) for each in some]
        for _ in range(25):
            who = chance.randrange(len(there))
            match chance.choice(("kill", "stop", "go on")):
                case "kill":
                    there[who].kill()
                    there[who] = stack.enter_context(Flooder(*some[who]))
                case "stop":
                    there[who].send(signal.SIGSTOP)
                case _:
                    there[who].send(signal.SIGCONT)
            time.sleep(chance.random() * 0.05)
        for each in there:
            each.send(signal.SIGCONT)
        for each in there:
            each.more_turns(2)


SETTLED: Final = 40
"""Turns: a newcomer has some at once."""
TURNS: Final = 60


def test_the_collectives_of_a_gang_of_two_containers_go_on_beside_floods_on_both_cards(tmp_path: Path) -> None:
    """Without gang scheduling each round takes a turn of both: the first one spins until the other's turn comes."""
    words = ("--processes", "2", "--at", str(tmp_path / "words"))
    floods = (Sharer("a", 700, "flood"), Sharer("b", 350, "flood", card=1), Sharer("c", 350, "flood", card=1))
    peers = [
        Sharer(f"peer-{rank}", 300, "collective", (*words, "--rank", str(rank)), card=rank, gang="train")
        for rank in range(2)
    ]
    with isolated(cards=("t4", "t4"), library=built()) as place, sharing(place, *floods, *peers) as running:
        first, had = after(running[3:], SETTLED, tmp_path / "words")
        last, has = after(running[3:], had + TURNS, tmp_path / "words")
    assert last - first >= 2 * (has - had)


def after(peers: list[Running], turns: int, words: Path) -> tuple[int, int]:
    """The round at which each has had this many turns, and the most that one had."""

    def timeslices() -> list[int]:
        return [each.time.timeslices if each.time else 0 for each in peers]

    until(lambda: min(timeslices()) >= turns)
    return last_round(words), max(timeslices())


def last_round(words: Path) -> int:
    """The last round that both peers have begun."""
    one, other = struct.unpack_from("=2I", words.read_bytes())
    return min(int(one), int(other))
