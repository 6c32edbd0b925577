"""A pod that runs grows and shrinks on its card, by the scheduler's word, without a restart and never over the card."""

from __future__ import annotations

import json
import random

import pytest

from partage_plugins.vocabulary.keys import CARDS, GPU_MEMORY, GPU_MILLI, RESIZE, RESIZE_WAIT
from rig.client.pods import Pod
from rig.client.wait import until
from rig.nodes.node import Node
from support.chain_stage import Chain
from support.isolation_stage import ask, seen, told_by

NO_MEMORY = "cuMemAlloc_v2 2"
MILLI = 700


def in_force(chain: Chain, pod: Pod) -> tuple[int, int, int]:
    """Gen, MiB and share, as the node's broker keeps them."""
    told = chain.limits_of(pod)
    (card,) = told.cards
    return told.gen, card.limit_bytes >> 20, card.share_milli


def wait_in_force(chain: Chain, pod: Pod, *wanted: int) -> None:
    until(f"{wanted} is in force", lambda: None if in_force(chain, pod) == wanted else str(in_force(chain, pod)))


def test_a_pod_grows_and_shrinks_while_it_runs(chain: Chain) -> None:
    pod = chain.pod("train", limits={GPU_MILLI: "300", GPU_MEMORY: "4Gi"})
    pod.wait_running()
    name, there = f"{pod.namespace}/{pod.name}", {CARDS: chain.grant(pod).card}
    assert ask(pod, "take 5000") == NO_MEMORY
    assert "has 700 milli and 12Gi by gen 2" in chain.partage("resize", name, "--share", str(MILLI), "--memory", "12Gi")
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
    pod = chain.pod("train", limits={GPU_MILLI: "300", GPU_MEMORY: "4Gi"})
    pod.wait_running()
    there = {CARDS: chain.grant(pod).card}
    chain.pod("beside", limits={GPU_MILLI: "600", GPU_MEMORY: "1Gi"}, annotations=there).wait_running()
    name = f"{pod.namespace}/{pod.name}"
    assert "no room on card" in chain.failing("resize", name, "--share", "500")
    pod.refresh()
    assert RESIZE not in pod.annotations
    assert in_force(chain, pod) == (1, 4096, 300)


def shares_in_force(chain: Chain, pods: list[Pod]) -> list[int]:
    told = told_by(chain.machine_of(pods[0])).containers
    return [card.share_milli for pod in pods for each in told if each.pod.uid == pod.uid for card in each.cards]


def a_death(chain: Chain, node: Node, rng: random.Random) -> None:
    """Of one of our daemons, which starts again."""
    which = rng.choice(["scheduler", "advertiser", "broker", "crishim"])
    if which == "scheduler":
        chain.scheduler.kill()
        chain.scheduler.start()
    else:
        next(each for each in (*node.components, *node.others) if which in each.name).restart()


@pytest.mark.extended("minutes of sizes and deaths; each part is promised by quicker tests")
@pytest.mark.parametrize("seed", [1])
def test_up_and_down_with_deaths_of_every_daemon_no_card_is_ever_over(chain: Chain, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  the same for the same seed
    limits = {GPU_MILLI: "200", GPU_MEMORY: "2Gi"}
    pods = [chain.pod("p0", limits=limits)]
    pods[0].wait_running()
    there = {CARDS: chain.grant(pods[0]).card}
    pods += [chain.pod(f"p{number}", limits=limits, annotations=there) for number in (1, 2)]
    for pod in pods:
        pod.wait_running()
    for step in range(40):
        share = rng.randrange(100, 900, 100)
        rng.choice(pods).annotate({RESIZE: json.dumps({"main": {"gpu-milli": share}}), RESIZE_WAIT: "yes"})
        if step % 5 == 4:
            a_death(chain, chain.rig.nodes[pods[0].node or ""], rng)
        assert sum(shares_in_force(chain, pods)) <= 1000

    def why_not() -> str | None:
        found, booked = shares_in_force(chain, pods), [chain.grant(pod).share_milli for pod in pods]
        assert sum(found) <= 1000
        return None if found == booked else f"{booked} are booked, and {found} in force"

    until("what is booked is in force", why_not)
    assert max(chain.allocation(pod).gen for pod in pods) > 2
