"""Time that crishim adds to the create of a container with an allocation: verify, call plugins, rewrite.

The node has fifty containers with grants. In each round three pods get their first container, after the calls and
pauses that kubelet makes before it: through the runtime directly with kubelet's request; directly with the rewritten
request, which is the container's cost without a proxy; and through crishim. The order changes from round to round. The
cost of crishim is the difference to the second.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
from collections.abc import Callable, Iterator
from typing import Final
from uuid import UUID

from bench.creating.node import CARDS, BenchNode, Way, serving
from bench.creating.requests import Made, made
from bench.harness import STOLEN, Bench
from bench.measuring.rounds import Stolen, as_difference, quiet_rounds
from bench.measuring.surroundings import time_now
from partage_plugins.api import GpuGrant, PodUid

ON_NODE: Final = 50
AT_ONCE: Final = 5
ROUNDS: Final = 60
MOST_TIMES: Final = 3
"""Up to this many times the rounds, if other machines disturb them."""
SMOKE_ROUNDS: Final = 3
ALONE: Final = 6
ALONE_AFTER_S: Final = 10.5
"""By then crishim's list of the runtime's containers is too old to be reused."""
SETTLED_AFTER_S: Final = 0.2
"""A runtime's work after it has answered a call would disturb the next one."""
ADDED_MS: Final = 3.0
_MS: Final = 1e6

PLAIN: Final = "CreateContainer straight, as kubelet asks"
SAME: Final = "CreateContainer straight, as crishim would rewrite it"
THROUGH: Final = "CreateContainer through crishim"
Making = tuple[Way, Callable[[Made, str], bytes]]
WAYS: Final[dict[str, Making]] = {
    PLAIN: ("straight", Made.create),
    SAME: ("straight", Made.create_as_rewritten),
    THROUGH: ("through", Made.create),
}


def pods(node: BenchNode) -> Iterator[Made]:
    """Pods with a tenth of a card each, cycling through the cards."""
    for number in itertools.count(1):
        card = CARDS[number % len(CARDS)]
        grant = GpuGrant(card=card.id, share_milli=100, limit_milli=1000, memory_bytes=1 << 30)
        yield made(PodUid(str(UUID(int=number, version=4))), grant, node.key)


async def fill(node: BenchNode, new: Iterator[Made]) -> None:
    for _ in range(ON_NODE // AT_ONCE):
        some = list(itertools.islice(new, AT_ONCE))
        sandboxes = await asyncio.gather(*(node.sandbox("through", pod) for pod in some))
        await asyncio.gather(*(node.create("through", pod.create(at)) for pod, at in zip(some, sandboxes, strict=True)))


async def one_round(node: BenchNode, new: Iterator[Made], names: tuple[str, ...]) -> dict[str, tuple[str, int]]:
    """The container of each way, and its nanoseconds; everything that it created is deleted afterwards."""
    found: dict[str, tuple[str, int]] = {}
    sandboxes: list[str] = []
    for name, pod in zip(names, itertools.islice(new, len(names)), strict=True):
        way, request = WAYS[name]
        await asyncio.sleep(SETTLED_AFTER_S)
        sandboxes.append(await node.sandbox(way, pod))
        found[name] = await node.create(way, request(pod, sandboxes[-1]))
    annotated = await node.annotated()
    wanted = {PLAIN: False, SAME: True, THROUGH: True}
    engaged = all((found[name][0] in annotated) is wanted[name] for name in names)
    await node.remove(*sandboxes)
    return found if engaged else {}


def measure(bench: Bench, node: BenchNode, new: Iterator[Made]) -> None:
    """Measures all three in turns, one create right after the other."""
    before = node.figures()
    times: dict[str, list[float]] = {name: [] for name in WAYS}
    orders = itertools.cycle(itertools.permutations(WAYS))

    def once() -> Stolen[dict[str, tuple[str, int]]]:
        began = time_now()
        found = bench.run(one_round(node, new, next(orders)))
        bench.engaged("crishim's annotation is on its containers and on no other", found)
        return Stolen(time_now().stolen_since(began), found)

    wanted = SMOKE_ROUNDS if bench.smoke else ROUNDS
    rounds = quiet_rounds(once, wanted, quiet=STOLEN, most=MOST_TIMES * wanted)
    bench.figure("most that other machines took in a round that counts", max(each.part for each in rounds))
    for name, (_, taken_ns) in itertools.chain.from_iterable(each.found.items() for each in rounds):
        times[name].append(taken_ns)
    for name, taken in times.items():
        bench.samples(name, taken)
    inside(bench, before, node.figures())
    added = as_difference(times[SAME], times[THROUGH]).median_ns / _MS
    bench.figure(
        "added over the request as kubelet asks, ms", as_difference(times[PLAIN], times[THROUGH]).median_us / 1e3
    )
    bench.bar(f"a verified rewrite adds, {ON_NODE} containers on the node", added, at_most=ADDED_MS, unit="ms")


def inside(bench: Bench, before: dict[str, float], after: dict[str, float]) -> None:
    """Metrics of crishim itself: means, since its histograms have only buckets."""
    rewritten = 'partage_crishim_held_total{outcome="rewritten"}'
    bench.engaged("crishim rewrote once a round", after[rewritten] - before[rewritten] >= SMOKE_ROUNDS)
    for name, what in (("judging", "verdict"), ("plugin", "plugins' answer")):
        total, count = (f"partage_crishim_{name}_seconds_{suffix}" for suffix in ("sum", "count"))
        mean_s = (after[total] - before[total]) / (after[count] - before[count])
        bench.figure(f"mean until the {what}, inside crishim, ms", mean_s * 1e3)


def measure_alone(bench: Bench, node: BenchNode, new: Iterator[Made]) -> None:
    """Measures a create after a pause, for which crishim must list the runtime's containers."""
    added: list[float] = []
    for _ in range(ALONE):
        bench.run(asyncio.sleep(ALONE_AFTER_S))
        found = bench.run(one_round(node, new, (SAME, THROUGH)))
        bench.engaged("crishim's annotation is on its container after a pause", found)
        added.append((found[THROUGH][1] - found[SAME][1]) / _MS)
    bench.figure("added to the first create after a pause, ms", statistics.median(added))


def main() -> int:
    bench = Bench.from_argv("rewriting", libraries=["msgspec", "cryptography", "protobuf", "uvloop"])
    with serving() as node:
        new = pods(node)
        bench.run(fill(node, new))
        bench.engaged(f"{ON_NODE} containers with grants are there", len(bench.run(node.annotated())) == ON_NODE)
        measure(bench, node, new)
        if not bench.smoke:
            measure_alone(bench, node, new)
        for client in node.clients.values():
            client.close()
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
