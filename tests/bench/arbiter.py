"""What the arbiter of a node takes for an event: of cards that two and five containers share, eight cards to a node.

What happens is taken from the policy simulator, once; then another arbiter is told all of it, in order, as fast as it
goes. An event is what the broker calls the arbiter for, with what it takes to fetch what is then to be done.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from bench.arbitrating.recorded import Recorder, recorded
from bench.harness import Bench
from partage_isolation.leases.arbiter import Arbiter
from partage_isolation.leases.durations import MS, SECOND
from partage_isolation.leases.policies import DEFAULT, by_name
from support.lease_simulation.cases import Case, Container
from support.lease_simulation.workloads import US, flood, inference, launch_and_wait

CARDS: Final = 8
MOST_US: Final = 15
SMOKE_NS: Final = SECOND // 10
LASTS_NS: Final = 2 * SECOND

NEIGHBOURS: Final[Mapping[str, tuple[Container, ...]]] = {
    "two that always want the card": (Container(300, flood(MS)), Container(700, flood(MS))),
    "five that always want the card": (Container(200, flood(MS)),) * 5,
    "five of four processes that wait for each kernel": (Container(200, launch_and_wait(MS), processes=4),) * 5,
    "inference beside training": (Container(300, inference()), Container(700, flood(300 * US))),
    "ceilings of 0.3 and 0.7": (Container(300, flood(MS), limit=300), Container(700, flood(MS), limit=700)),
}


def node(neighbours: tuple[Container, ...], lasts_ns: int) -> Case:
    everywhere = tuple(
        Container(each.share, each.workload, each.limit, each.processes, cards=(card,))
        for card in range(CARDS)
        for each in neighbours
    )
    return Case(everywhere, lasts_ns=lasts_ns, skip_ns=0)


def told_again(recorder: Recorder) -> int:
    """Tells another arbiter all of it; what that wanted done."""
    policy, acts = by_name(DEFAULT), 0
    arbiter = Arbiter(policy=lambda _: policy)
    for happens in recorder.happened:
        happens(arbiter)
        acts += len(arbiter.take())
    return acts


def main() -> int:
    bench = Bench.from_argv("arbiter")
    for name, neighbours in NEIGHBOURS.items():
        recorder = recorded(node(neighbours, SMOKE_NS if bench.smoke else LASTS_NS))
        bench.engaged(f"{name}: it does the same again", told_again(recorder) == recorder.acts > 0)
        events = len(recorder.happened)
        all_us = bench.time(f"{name}: all events", partial(told_again, recorder)).median_us
        bench.bar(f"{name}: an event", all_us / events, at_most=MOST_US, unit="us")
        bench.figure(f"{name}: events of a card in a second", events / CARDS / recorder.seconds)
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
