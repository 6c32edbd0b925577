"""A card's memory is overcommitted to pods that opt in: the operator sets by how much, and everybody can see it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pytest

from partage_gpu.discovery.settings import MEMORY_BEYOND, RESERVE
from partage_plugins.api import CardId
from partage_plugins.api.keys import CARDS, GPU_MEMORY, PREFIX
from rig.client.pods import Pod
from support.chain_stage import Chain, start_advertiser

NODE = "n1"
GIB = 1 << 30


@pytest.fixture
def small_card(chain: Chain) -> Iterator[CardId]:
    """A card with 8 GiB for containers, and 8 GiB of overcommitment."""
    card = chain.advertisers[NODE].cards()[0]
    kept_back = (card.memory_bytes - 8 * GIB) >> 20
    told_anew(chain, {RESERVE: str(kept_back), MEMORY_BEYOND: "8Gi"}, has=8 * GIB, beyond=8 * GIB)
    yield card.id
    chain.clear()
    told_anew(chain, {}, has=card.memory_bytes, beyond=0)


def told_anew(chain: Chain, settings: Mapping[str, str], *, has: int, beyond: int) -> None:
    advertiser = chain.advertisers[NODE]
    advertiser.started[-1].stop()
    start_advertiser(advertiser, settings)

    def why_not() -> str | None:
        sizes = {(card.memory_bytes, card.beyond_bytes) for card in advertiser.cards()}
        return None if sizes == {(has, beyond)} else f"the cards have {sizes}"

    advertiser.wait("its cards are told anew", why_not)


def asking(chain: Chain, name: str, gib: int, *, on: CardId, main_memory: str = "6Gi", **notes: str) -> Pod:
    limits = {GPU_MEMORY: f"{gib}Gi", "memory": main_memory}
    said = {f"{PREFIX}{key}": value for key, value in notes.items()}
    return chain.pod(name, limits=limits, requests={"memory": "16Mi"}, annotations={CARDS: on, **said})


def test_two_that_move_are_bound_to_one_card_and_one_that_stays_is_told_the_figures(
    chain: Chain, small_card: CardId
) -> None:
    movers = [asking(chain, f"mover-{number}", 6, on=small_card, movable="yes") for number in range(2)]
    for pod in movers:
        assert pod.wait_bound() == NODE
        grant = chain.grant(pod)
        assert (grant.card, grant.memory_bytes, grant.movable) == (small_card, 6 * GIB, True)
        assert chain.allocation(pod).crit == ("movable",)
    stays = asking(chain, "stays", 6, on=small_card)
    stays.wait_why(
        "Insufficient GPU memory (card 8 GiB, beyond 8 GiB, promised 12 GiB, of which 1 GiB stay there, "
        "and a turn takes 5.5 GiB)",
    )
    explained = json.loads(chain.partage("explain", f"{stays.namespace}/{stays.name}", "-o", "json"))
    (node,) = (each for each in explained["pod"]["explained"]["nodes"] if each["node"] == NODE)
    (card,) = (each for each in node["cards"] if each["card"] == small_card)
    assert (card["memory_left_bytes"], card["beyond_bytes"], card["promised_bytes"]) == (
        3 * GIB // 2,
        8 * GIB,
        12 * GIB,
    )
    assert "8 GiB +8 GiB" in chain.partage("nodes")
    movers[0].delete_and_wait()
    assert asking(chain, "small", 2, on=small_card).wait_bound() == NODE


def test_a_mover_without_main_memory_for_what_it_moves_is_told_so(chain: Chain, small_card: CardId) -> None:
    pod = asking(chain, "short", 6, on=small_card, movable="yes", main_memory="4Gi")
    pod.wait_why("movable memory of 6Gi needs limits.memory of at least 6Gi on container main; it has 4Gi")
