"""How a simulated node fares: what its file says it is, and what its simgpud says of it now."""

from __future__ import annotations

import msgspec

from partage_simgpu import simgpud
from partage_simgpu.describing import Section, sections_of
from partage_simgpu.driver_root import CONF
from partage_simgpu.errors import NodeFailed
from partage_simgpu.node import SimulatedNode
from partage_simgpu.statuses import CardStatus


class CardReport(msgspec.Struct, frozen=True):
    """A card or MIG instance of a node."""

    index: int
    name: str
    uuid: str
    is_instance: bool
    status: CardStatus | None
    """None: no simgpud tells."""


class NodeReport(msgspec.Struct, frozen=True):
    """A node, running or not."""

    name: str
    root: str
    pid: int | None
    """Of its simgpud; None: it does not run."""
    cards: tuple[CardReport, ...]


def report(node: SimulatedNode) -> NodeReport:
    """Asks the node."""
    sections = sections_of((node.root / CONF).read_text())
    found = simgpud.running(node.root)
    statuses: dict[int, CardStatus] = {}
    if found is not None:
        found.close()
        try:
            statuses = node.status()
        except NodeFailed:  # it ended just now, or does not answer
            found = None
    cards = tuple(_card(index, section, statuses.get(index)) for index, section in enumerate(sections))
    return NodeReport(node.root.name, str(node.root), None if found is None else found.pid, cards)


def _card(index: int, section: Section, status: CardStatus | None) -> CardReport:
    fields = section.fields
    return CardReport(index, str(fields["name"]), str(fields["uuid"]), section.kind == "mig", status)
