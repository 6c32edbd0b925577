"""A process of a container that wants a card continuously. Arguments: the socket, and its behaviour.

It writes a line for each turn that it had: when the turn began and ended, in nanoseconds of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

from isolation.timeslices.members import Line, Member
from partage_isolation.wire.packets import NO_TOKEN, Result, TimeSlice, What
from rig.errors import NeverHappened


def flood(member: Member, *, says_so: bool) -> None:
    """Take one turn after the other; at the end of each its work is done at once."""
    while True:
        line = member.wait_open()
        began = time.monotonic_ns()
        wait_over(member, line)
        print(began, time.monotonic_ns(), flush=True)  # noqa: T201
        if says_so:
            member.drained(blocked=True)


def wait_over(member: Member, line: Line) -> None:
    """Wait for its end, whatever extensions it gets."""
    while (now := member.line()).is_open and now.epoch - line.epoch < 1 << 16:
        time.sleep(0.0003)


def gang(member: Member, cards: int) -> None:
    """Work that needs all cards at once: a turn is when all of them are open."""
    for card in range(cards):
        member.join(card)
    said = [-1] * cards
    while True:
        began = time.monotonic_ns()
        while all(member.line(card).is_open for card in range(cards)):
            time.sleep(0.0003)
        if (ended := time.monotonic_ns()) - began > 1_000_000:
            print(began, ended, flush=True)  # noqa: T201
        for card in range(cards):
            line = member.line(card)
            if not line.is_open and said[card] != line.epoch:
                said[card] = line.epoch
                member.drained(card, epoch=line.epoch, blocked=True)
        assert not member.is_hung_up()
        time.sleep(0.0003)


STEPS: Final = ("joined", "wants", "holds", "over", "drained", "blocked", "idle")
"""The messages of one time slice: each name stops at this step."""


def step(member: Member, last: str) -> None:
    """Stop at this step, and print a line."""
    if last == "wants":
        member.want()
    elif last != "joined":
        line = member.wait_open()
        if last in ("over", "drained", "blocked"):
            wait_over(member, line)
        if last in ("drained", "blocked"):
            member.drained(epoch=line.epoch, blocked=last == "blocked")
        if last == "idle":
            member.idle(epoch=line.epoch)
    print(0, 0, flush=True)  # noqa: T201
    while True:
        time.sleep(1)


def packets(member: Member, what: What) -> None:
    """Send as fast as the broker accepts; leave replies unread for as long as possible."""
    while True:
        timeslice = TimeSlice(epoch=member.line().epoch, at=time.monotonic_ns(), is_blocked=1)
        if what is What.JOIN:
            member.join()
        else:
            member.say(what, 0, timeslice)


def forever(member: Member) -> None:
    """Flood, and reconnect to a broker that was down."""
    while True:
        try:
            flood(member, says_so=True)
        except (OSError, AssertionError, NeverHappened):
            come_back(member)


def come_back(member: Member) -> None:
    """Reconnect by the token, or as a new process if a broker died before it had recorded the token."""
    while True:
        try:
            result = member.resume()
            if result == Result.OK and member.join() == Result.OK:
                return
            if result == Result.UNKNOWN:
                member.client.token = NO_TOKEN
        except (OSError, AssertionError):
            time.sleep(0.01)


def main() -> None:
    member = Member(Path(sys.argv[1]))
    member.join()
    what, *more = sys.argv[2].split()
    child = 0
    if what == "forked":
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
        what, *more = more or ["flood"]
    print("ready", child, flush=True)  # noqa: T201
    match what:
        case "packets":
            packets(member, What(int(more[0])))
        case "step":
            step(member, more[0])
        case "gang":
            gang(member, int(more[0]))
        case "forever":
            forever(member)
        case _:
            flood(member, says_so=what != "silent")


if __name__ == "__main__":
    main()
