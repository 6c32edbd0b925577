"""Changes of a node, and how soon each is told.

Every round begins with an advertiser that remembers no fault, so that none is judged by those before it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bench.advertising.place import CARDS, CUT, FIRST, LAST, Act, Node, Right, Seen, all_ok, health_of, is_lost
from partage_base.condition import Condition, encode_condition
from partage_plugins.vocabulary import GPU
from partage_plugins.vocabulary.inventory import Inventory
from partage_plugins.vocabulary.places import CRISHIM_CONDITION, KUBELET_SPOKE, PAUSE_FOLDER
from support.simgpu import Card

_PAUSE: Final = f"/{PAUSE_FOLDER}/by-hand"
_SIGN: Final = f"/{KUBELET_SPOKE}"


@dataclass(frozen=True)
class Change:
    """What is done, what is right then, and what makes all well again."""

    name: str
    do: Act
    right: Right
    undo: Act = lambda _: None
    before: Act = lambda _: None


def latencies(node: Node, change: Change, rounds: int) -> Sequence[Seen]:
    found: list[Seen] = []
    for _ in range(rounds):
        node.begin_anew()
        change.before(node)
        began = time.monotonic()
        change.do(node)
        found.append(node.seen(change.right, since=began))
        change.undo(node)
        node.seen(all_ok)
    return found


def _told(command: str) -> Act:
    return lambda node: node.tell(command)


def _are(*cards: str | Card) -> Act:
    def loaded(node: Node) -> None:
        node.describe(cards)
        node.driver.restart()

    return loaded


def _first_is(health: str) -> Right:
    return lambda inventory: health_of(inventory, FIRST).startswith(health)


def _lost(node: Node) -> None:
    node.tell("lose 0")
    node.seen(is_lost(FIRST))


def _is_cut(inventory: Inventory) -> bool:
    part = inventory.part(GPU)
    instances = [one for one in part.cards if one.parent == FIRST] if part else []
    return [one.health for one in instances] == ["ok"] * len(CUT[0].mig)


def _paused(node: Node) -> None:
    node.stage.machine.write(_PAUSE, "by the bench\n")


def _resumed(node: Node) -> None:
    node.stage.machine.path(_PAUSE).unlink()


def _kubelet_spoke(node: Node) -> None:
    node.stage.machine.write(f"/{CRISHIM_CONDITION}", encode_condition(Condition()).decode())
    node.stage.machine.write(_SIGN, "")


def _forgotten(node: Node) -> None:
    node.stage.machine.path(_SIGN).unlink()


CHANGES: Final = (
    Change("an XID", _told("xid 0 94"), _first_is("degraded: XID 94")),
    Change("an ECC error", _told("ecc 0 uncorrected 1"), _first_is("degraded: an error of memory")),
    Change("a card lost", _told("lose 0"), is_lost(FIRST), _told("restore 0")),
    Change("a card restored", _told("restore 0"), all_ok, before=_lost),
    Change("a card cut into MIG instances", _are(*CUT), _is_cut, _are(*CARDS)),
    Change("a card removed", _are(*CARDS[:-1]), is_lost(LAST), _are(*CARDS)),
    Change("a pause by hand", _paused, _first_is("degraded: paused: by the bench"), _resumed),
    Change("kubelet speaks through crishim", _kubelet_spoke, lambda inventory: inventory.ready.crishim, _forgotten),
)
