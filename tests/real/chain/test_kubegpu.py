"""KubeGPU's story, in its users' words: whole cards as close as was asked for, or a pod that waits and says why."""

from __future__ import annotations

import json

from partage_plugins.vocabulary import GPU, ContainerName
from rig.client.pods import Pod
from support.chain_stage import Chain
from support.isolation_stage import seen

ANNOTATION = "pod.alpha/DeviceInformation"
WHOLE_MIB = 80_000
"""Less than a card's memory, more than any part of it that is given out."""


def job(chain: Chain, name: str, cards: int, *, topology: int = 0) -> Pod:
    """As DLWorkspace writes one: the number in an annotation, and no resources."""
    said = {
        "podname": name,
        "requests": {"alpha.gpu/gpu-generate-topology": topology},
        "runningcontainer": {"main": {"requests": {"alpha.gpu/numgpu": cards}}},
    }
    return chain.pod(name, limits={}, annotations={ANNOTATION: json.dumps(said)})


def in_groups(chain: Chain, name: str, *paths: str) -> Pod:
    requests = {f"alpha/grpresource/{path}/cards": 1 for path in paths}
    said = {"runningcontainer": {"main": {"requests": requests}}}
    return chain.pod(name, limits={}, annotations={ANNOTATION: json.dumps(said)})


def cards_of(chain: Chain, pod: Pod) -> set[str]:
    grants = chain.allocation(pod).of(GPU)[ContainerName("main")]
    assert all(grant.share_milli == 1000 for grant in grants)
    return {str(grant.card) for grant in grants}


def test_a_job_has_whole_cards_that_are_joined_and_the_next_waits_for_such(chain: Chain) -> None:
    """Two cards are joined by NVLink on each of two nodes."""
    pair = job(chain, "pair", 2, topology=1)
    single = job(chain, "single", 1)
    for pod in (pair, single):
        pod.wait_running()
    assert pair.node != single.node
    assert len(cards_of(chain, pair)) == 2
    assert len(cards_of(chain, single)) == 1
    assert seen(pair)["total"] > WHOLE_MIB
    waits = job(chain, "waits", 2, topology=1)
    chain.wait_why(waits, "0/2 nodes are available")
    single.delete()
    waits.wait_running()
    assert waits.node != pair.node


def test_groups_that_no_node_has_keep_a_pod_waiting_and_say_so(chain: Chain) -> None:
    """The two cards of a node are near to different processors, and linked all the same."""
    together = in_groups(chain, "together", "gpugrp1/0/gpugrp0/0/gpu/0", "gpugrp1/0/gpugrp0/0/gpu/1")
    chain.wait_why(together, "0/2 nodes are available: 2 node(s) had too few cards behind one PCIe switch")
    linked = in_groups(chain, "linked", "gpugrp1/0/gpugrp0/0/gpu/0", "gpugrp1/0/gpugrp0/1/gpu/0")
    linked.wait_running()
    assert len(cards_of(chain, linked)) == 2


def test_where_cards_come_from_is_not_the_users_to_say(chain: Chain) -> None:
    said = {
        "nodename": "n1",
        "runningcontainer": {
            "main": {"allocatefrom": {"alpha/grpresource/gpu/0/cards": "alpha/grpresource/gpu/GPU-x/cards"}}
        },
    }
    pod = chain.pod("forged", limits={}, annotations={ANNOTATION: json.dumps(said)})
    pod.wait_running()
    pod.refresh()
    assert "alloc.partage.dev/allocation" not in pod.annotations
