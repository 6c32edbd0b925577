"""A small fleet of shared pods, placed by each policy: the same pods, the same nodes, other cards.

Only the scheduler's brain runs here: no cluster, no card. A letter is a pod, and what it covers of a card is its share.
"""

from __future__ import annotations

import sys
from typing import Final

from msgspec.structs import replace

from partage_cli.simulation.policies import decider_with
from partage_cli.simulation.workloads import GIB, FleetNode, node_of, request_of
from partage_plugins.vocabulary import GPU, Allocation, GpuRequest, PodName, PodRequest, PodUid, Room
from partage_scheduler.decision import Decider

POLICIES: Final = ("binpack", "spread", "kubeshare", "fgd", "fgd+")
SHARES: Final = (500, 300, 450, 200, 700, 300, 250, 600, 100, 400, 150, 350, 800, 650)
CPU_MILLI: Final = (1000, 4000, 2000)
"""In turn: shares of cards and CPU have little to do with each other."""
PAIR: Final = 2
PAIR_CPU_MILLI: Final = 12_000
CPUS: Final = (8, 16, 32)
CARDS: Final = 4
CELL_MILLI: Final = 50


def say(text: str = "") -> None:
    sys.stdout.write(text + "\n")


def fleet() -> list[FleetNode]:
    """Nodes with as many cards, and with little, some and much CPU."""
    return [
        node_of(place, f"n{place + 1}", Room(cpu_milli=cpus * 1000, memory_bytes=256 * GIB), ["H100"] * CARDS)
        for place, cpus in enumerate(CPUS)
    ]


def pods() -> list[PodRequest]:
    """Pods a, b, c and so on, each with its share of a card."""
    return [
        named(chr(ord("a") + place), 1, share, CPU_MILLI[place % len(CPU_MILLI)]) for place, share in enumerate(SHARES)
    ]


def named(letter: str, count: int, share: int, cpu_milli: int) -> PodRequest:
    needs = Room(cpu_milli=cpu_milli, memory_bytes=4 * GIB)
    request = request_of(needs, GpuRequest(count=count, share_milli=share))
    return replace(request, pod=replace(request.pod, name=PodName(letter), uid=PodUid(letter)))


def placed(decider: Decider, requests: list[PodRequest]) -> list[tuple[PodRequest, Allocation]]:
    found: list[tuple[PodRequest, Allocation]] = []
    for request in requests:
        decision = decider.decide(request)
        if decision is not None:
            decider.take(decision.allocation, request.needs)
            found.append((request, decision.allocation))
    return found


def drawn(nodes: list[FleetNode], found: list[tuple[PodRequest, Allocation]]) -> None:
    """A bar for each card, a line for each node."""
    bars = {card.id: "" for node in nodes for card in node.cards}
    for request, allocation in found:
        for grants in allocation.of(GPU).values():
            for grant in grants:
                bars[grant.card] += request.pod.name * (grant.share_milli // CELL_MILLI)
    width = 1000 // CELL_MILLI
    for node, cpus in zip(nodes, CPUS, strict=True):
        say(f"   {node.name} {cpus:>3} CPU  " + " ".join(f"[{bars[card.id]:·<{width}}]" for card in node.cards))


def show(policy: str) -> None:
    nodes = fleet()
    decider, _ = decider_with(policy)
    for node in nodes:
        decider.add_node(node.name, node.inventory, node.total)
    found = placed(decider, pods())
    say(f"\n{policy}")
    drawn(nodes, found)
    pair = named("z", PAIR, 1000, PAIR_CPU_MILLI)
    decision = decider.decide(pair)
    if decision is None:
        say(f"   ✗ a pod that asks for {PAIR} whole cards: {decider.explain(pair)}")
    else:
        say(f"   ✓ a pod that asks for {PAIR} whole cards still fits, on {decision.node}")


def main() -> None:
    say(f"\nWhere pods go: {len(SHARES)} pods that share cards, by each policy")
    for policy in POLICIES:
        show(policy)
    say(
        "\n   With your own cluster: kubectl get nodes,pods -A -o json > now.json; partage simulate --snapshot now.json"
    )


if __name__ == "__main__":
    main()
