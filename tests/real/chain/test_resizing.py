"""The scheduler resizes a running pod on its card, up and down, without a restart and never beyond the card."""

from __future__ import annotations

import functools
import itertools
import json
import os
import random
import time
from collections.abc import Callable

import pytest
import structlog

from partage_plugins.api.keys import CARDS, GPU_MEMORY, GPU_MILLI, RESIZE, RESIZE_WAIT
from partage_plugins.api.limits import WHOLE_MILLI
from rig.client.pods import Pod
from rig.client.wait import until
from support.chain_stage import Chain
from support.isolation_stage import ask, seen, told_by

NO_MEMORY = "cuMemAlloc_v2 2"
MILLI = 700
DAEMONS = ("scheduler", "advertiser", "broker", "crishim")
_log = structlog.get_logger()


def in_force(chain: Chain, pod: Pod) -> tuple[int, int, int]:
    """Generation, MiB and share in the node's broker."""
    told = chain.limits_of(pod)
    (card,) = told.cards
    return told.gen, card.limit_bytes >> 20, card.share_milli


def wait_in_force(chain: Chain, pod: Pod, *wanted: int) -> None:
    until(f"{wanted} is in force", lambda: None if in_force(chain, pod) == wanted else str(in_force(chain, pod)))


def test_a_pod_grows_and_shrinks_while_it_runs(chain: Chain) -> None:
    pod = chain.pod("train", limits={GPU_MILLI: "300", GPU_MEMORY: "4Gi"}).wait_running()
    name, there = f"{pod.namespace}/{pod.name}", {CARDS: chain.grant(pod).card}
    assert ask(pod, "take 5000") == NO_MEMORY
    assert "by gen 2 of its allocation" in chain.partage("resize", name, "--share", str(MILLI), "--memory", "12Gi")
    wait_in_force(chain, pod, 2, 12288, MILLI)
    assert ask(pod, "take 5000") == "took 5000"
    assert seen(pod)["total"] == 12288
    chain.pod("late", limits={GPU_MILLI: "400", GPU_MEMORY: "1Gi"}, annotations=there).wait_why("GPU share")
    assert json.loads(chain.partage("explain", name, "-o", "json"))["pod"]["given"][0]["share_milli"] == MILLI

    chain.partage("resize", name, "--share", "300", "--memory", "2Gi")
    wait_in_force(chain, pod, 3, 2048, 300)
    assert ask(pod, "take 1") == NO_MEMORY, "it holds more than it may"
    assert ask(pod, "free") == "gave back"
    assert ask(pod, "take 1000") == "took 1000"
    assert pod.refresh()["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_wish_that_has_no_room_is_taken_back_and_nothing_changes(chain: Chain) -> None:
    pod = chain.pod("train", limits={GPU_MILLI: "300", GPU_MEMORY: "4Gi"}).wait_running()
    there = {CARDS: chain.grant(pod).card}
    chain.pod("beside", limits={GPU_MILLI: "600", GPU_MEMORY: "1Gi"}, annotations=there).wait_running()
    name = f"{pod.namespace}/{pod.name}"
    assert "Insufficient GPU share" in chain.failing("resize", name, "--share", "500")
    pod.refresh()
    assert RESIZE not in pod.annotations
    assert in_force(chain, pod) == (1, 4096, 300)


class Sizes:
    """Pods that share a card, and the time that each of their resizes took to be in force."""

    def __init__(self, chain: Chain, pods: list[Pod]) -> None:
        self.chain, self.pods = chain, pods
        self.calm_s: list[float] = []
        self.beside_deaths_s: list[float] = []

    def become(self, wanted: list[int], meanwhile: Callable[[], None] | None) -> None:
        began, left = time.monotonic(), set(range(len(wanted)))
        times_s = self.calm_s if meanwhile is None else self.beside_deaths_s
        for pod, share in zip(self.pods, wanted, strict=True):
            pod.annotate({RESIZE: json.dumps({"main": {"gpu-milli": share}}), RESIZE_WAIT: "yes"})
        if meanwhile is not None:
            meanwhile()

        def why_not() -> str | None:
            nonlocal times_s
            if not self.chain.scheduler.is_running:  # it lost its lead on a busy machine; a Deployment restarts it
                self.chain.scheduler.start()
                times_s = self.beside_deaths_s
            found = self._in_force()
            assert sum(found) <= WHOLE_MILLI
            for place in sorted(left):
                if found[place] == wanted[place]:
                    left.remove(place)
                    times_s.append(time.monotonic() - began)
            return f"{found} of {wanted} in force" if left else None

        until("what is wished for is in force", why_not)

    def _in_force(self) -> list[int]:
        told = told_by(self.chain.machine_of(self.pods[0])).containers
        return [
            card.share_milli for pod in self.pods for each in told if each.pod.uid == pod.uid for card in each.cards
        ]


def in_words(times_s: list[float]) -> str:
    ordered = sorted(times_s)
    middle, late = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    return f"{len(ordered)} wishes, median {middle:.1f} s, 99th percentile {late:.1f} s, most {ordered[-1]:.1f} s"


@pytest.mark.extended("minutes of sizes and deaths; each part is promised by quicker tests")
@pytest.mark.parametrize("seed", [1])
def test_up_and_down_with_deaths_of_every_daemon_no_card_is_ever_over(chain: Chain, seed: int) -> None:
    """`TEST_WISHES` is the number of resizes; during the last of every five a daemon dies."""
    rng = random.Random(seed)  # noqa: S311  the same for the same seed
    limits = {GPU_MILLI: "200", GPU_MEMORY: "2Gi"}
    pods = [chain.pod("p0", limits=limits)]
    pods[0].wait_running()
    there = {CARDS: chain.grant(pods[0]).card}
    pods += [chain.pod(f"p{number}", limits=limits, annotations=there) for number in (1, 2)]
    for pod in pods:
        pod.wait_running()
    sizes = Sizes(chain, pods)
    for step in range(int(os.environ.get("TEST_WISHES", "39")) // len(pods)):
        cuts = sorted(rng.sample(range(50, WHOLE_MILLI, 50), len(pods)))
        wanted = [after - before for before, after in itertools.pairwise([0, *cuts])]
        node = chain.rig.nodes[pods[0].node or ""]
        death = functools.partial(chain.restart, rng.choice(DAEMONS), node) if step % 5 == 4 else None
        sizes.become(wanted, death)
    _log.info("in force", calm=in_words(sizes.calm_s), beside_deaths=in_words(sizes.beside_deaths_s))
    assert [pod.refresh()["status"]["containerStatuses"][0]["restartCount"] for pod in pods] == [0, 0, 0]
    assert max(chain.allocation(pod).gen for pod in pods) > 2
