"""A pod's part of a card as KubeShare and Gemini mean it.

Its containers share one budget; other pods have the rest.
"""

from __future__ import annotations

import json

from partage_plugins.api import GPU, BudgetName, grantee_of
from partage_plugins.api.keys import BUDGET, CARDS, GPU_MEMORY, GPU_MILLI
from rig.client.manifests import a_container
from rig.client.pods import Pod
from support.chain_stage import Chain
from support.isolation_stage import IMAGE, SERVING, ask, seen, told_by

NO_MEMORY = "cuMemAlloc_v2 2"
POD = grantee_of(BudgetName("pod"))


def of_two(chain: Chain, name: str, milli: int, gib: int) -> Pod:
    """A pod whose containers `main` and `side` use one budget."""
    limits = {GPU_MILLI: str(milli), GPU_MEMORY: f"{gib}Gi"}
    containers = [a_container(each, image=IMAGE, command=SERVING, limits=limits) for each in ("main", "side")]
    return chain.pod(name, limits={}, containers=containers, annotations={BUDGET: "pod"}, restart="Always")


def test_two_containers_have_one_part_of_a_card_together_also_after_one_crashed(chain: Chain) -> None:
    pod = of_two(chain, "both", 600, 8).wait_running()
    (grant,) = chain.allocation(pod).of(GPU).pop(POD)
    assert set(chain.allocation(pod).of(GPU)) == {POD}
    there = {CARDS: grant.card}
    beside = chain.pod("beside", limits={GPU_MILLI: "400", GPU_MEMORY: "2Gi"}, annotations=there).wait_running()
    chain.pod("third", limits={GPU_MILLI: "1", GPU_MEMORY: "1Gi"}, annotations=there).wait_why("GPU share")

    assert [seen(pod, each)["total"] for each in ("main", "side")] == [8192, 8192]
    assert ask(pod, "take 5000") == "took 5000"
    assert ask(pod, "take 4000", "side") == NO_MEMORY
    assert ask(pod, "take 1500", "side") == "took 1500"
    told = [each for each in told_by(chain.machine_of(pod)).containers if each.pod.uid == pod.uid]
    assert sorted((each.container, each.budget) for each in told) == [("main", "pod"), ("side", "pod")]
    explained = json.loads(chain.partage("explain", f"{pod.namespace}/{pod.name}", "-o", "json"))
    assert [each["container"] for each in explained["pod"]["given"]] == [POD]

    chain.kill_container(pod)
    pod.wait_running()
    assert ask(pod, "take 5000") == "took 5000", "what it had is free again, and what the other has is not"
    assert ask(pod, "take 4000", "side") == NO_MEMORY
    assert ask(beside, "take 1500") == "took 1500"
