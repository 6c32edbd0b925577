"""The advertiser's discovery, with the real driver code, on simulated cards to which faults happen.

Only time is simulated: it advances only when a test says so.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import msgspec
import pytest

from partage_gpu.discovery.discovery import Discovery
from partage_gpu.discovery.settings import DiscoverySettings
from partage_gpu.nvml.driver import Driver
from partage_plugins.api import GpuPart, NodeName
from partage_plugins.api.gpu import MIB
from partage_plugins.api.node import NodeContext
from partage_plugins.api.places import PAUSE_FOLDER
from rig.client.wait import until
from support.simgpu import NODE, SimulatedNode, card, card_uuid, simulated_node

pytestmark = pytest.mark.slow
ONE, TWO = (card_uuid(NODE, ordinal) for ordinal in range(2))
BOTH_OK = {ONE: "ok", TWO: "ok"}
CAME_BACK = "degraded: came back, being watched"


class Cards:
    """A node's cards as in the inventory."""

    def __init__(self, root: Path, node: SimulatedNode) -> None:
        self.root, self.node, self.now_s = root, node, 0.0
        context = NodeContext(node=NodeName("n1"), role="advertiser", root=PurePosixPath(root), wake=lambda: None)
        self.discovery = Discovery(
            context,
            DiscoverySettings(),
            driver=Driver(node.root, wake=lambda: None, look_deadline_s=1.0),
            clock=lambda: self.now_s,
        )

    def part(self) -> GpuPart | None:
        part = self.discovery.discover(None)
        return None if part is None else msgspec.convert(msgspec.to_builtins(part), GpuPart)

    def health(self) -> dict[str, str]:
        part = self.part()
        return {card.id: card.health for card in part.cards} if part else {}

    def become(self, what: Callable[[dict[str, str]], bool]) -> dict[str, str]:
        """Wait for this health, and return it."""
        health: dict[str, str] = {}

        def why_not() -> str | None:
            health.clear()
            health.update(self.health())
            return None if what(health) else str(health)

        until("cards are as they must be", why_not)
        return health

    def are(self, expected: dict[str, str]) -> None:
        self.become(lambda health: health == expected)

    def users(self) -> list[str]:
        """Our processes that have the driver's library mapped."""
        return [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit() and self._maps(entry)]

    def _maps(self, process: Path) -> bool:
        try:
            maps = (process / "maps").read_text()
        except OSError:
            return False
        return str(self.node.root) in maps and "libnvidia-ml" in maps


@contextmanager
def cards_of(root: Path, node: SimulatedNode) -> Generator[Cards]:
    cards = Cards(root, node)
    try:
        yield cards
    finally:
        cards.discovery.close()


@pytest.fixture
def cards(tmp_path: Path) -> Iterator[Cards]:
    with simulated_node(tmp_path, cards=("h100", "h100")) as node, cards_of(tmp_path, node) as cards:
        cards.are(BOTH_OK)
        yield cards


def test_two_healthy_cards_with_what_the_inventory_tells_of_them(cards: Cards) -> None:
    part = cards.part()
    assert part is not None
    assert [card.model for card in part.cards] == ["NVIDIA H100 80GB HBM3"] * 2
    assert {card.id for card in part.cards} == {ONE, TWO}
    assert all(0 < card.memory_bytes < 81559 * MIB for card in part.cards)
    assert part.links == ((0, 18), (18, 0))
    assert cards.part() == part


def test_an_error_degrades_and_quiet_heals(cards: Cards) -> None:
    cards.node.control("xid 0 94")
    cards.are({ONE: "degraded: XID 94: an error of memory was contained to one program", TWO: "ok"})
    cards.now_s += 60
    cards.are(BOTH_OK)


def test_a_card_that_falls_off_the_bus_is_lost_and_comes_back_watched(cards: Cards) -> None:
    cards.node.control("lose 1")
    cards.are({ONE: "ok", TWO: "lost"})
    part = cards.part()
    assert part is not None
    assert part.card(part.cards[1].id) is part.cards[1]
    assert part.cards[1].lost_because
    cards.node.control("restore 1")
    pause = cards.root / PAUSE_FOLDER / "by-hand"  # only processes started later find a lost card again
    pause.parent.mkdir(parents=True)
    pause.write_text("reset of card 1\n")
    assert set(cards.health().values()) == {"degraded: paused: reset of card 1"}
    pause.unlink()
    cards.are({ONE: "ok", TWO: CAME_BACK})
    cards.now_s += 60
    cards.are(BOTH_OK)


def test_a_driver_that_hangs_loses_all_cards_and_gives_them_back(cards: Cards) -> None:
    cards.node.control("nvml hang")
    cards.are({ONE: "lost", TWO: "lost"})
    cards.node.control("nvml resume")
    cards.are({ONE: CAME_BACK, TWO: CAME_BACK})
    cards.now_s += 60
    cards.are(BOTH_OK)


def test_a_pause_leaves_no_library_mapped(cards: Cards) -> None:
    assert cards.users()
    pause = cards.root / PAUSE_FOLDER / "by-hand"
    pause.parent.mkdir(parents=True)
    pause.write_text("driver upgrade\n")
    assert set(cards.health().values()) == {"degraded: paused: driver upgrade"}
    assert not cards.users()
    pause.unlink()
    cards.are(BOTH_OK)


def test_instances_are_cards(tmp_path: Path) -> None:
    cut = card("h100", mig=("1g.10gb", "3g.40gb"))
    with simulated_node(tmp_path, cards=(cut, "l4")) as node, cards_of(tmp_path, node) as cards:
        cards.become(lambda health: len(health) == 3)
        part = cards.part()
        assert part is not None
        instances = [card for card in part.cards if card.parent]
        assert sorted((card.mig_profile, card.parent) for card in instances) == [("1g.10gb", ONE), ("3g.40gb", ONE)]
        assert all(card.id.startswith("MIG-") for card in instances)
        assert {card.model for card in part.cards if not card.parent} == {"NVIDIA L4"}
        assert part.links == ()
