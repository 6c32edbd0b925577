"""A pod that runs grows and shrinks on its card, by the scheduler's word, without a restart and never over the card."""

from __future__ import annotations

import json

from partage_plugins.vocabulary.keys import CARDS, GPU_MEMORY, GPU_MILLI, RESIZE
from rig.client.pods import Pod
from rig.client.wait import until
from support.chain_stage import Chain
from support.isolation_stage import ask, seen

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
