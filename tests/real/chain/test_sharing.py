"""KubeShare's story from the user's manifest to the program's limits: parts of cards are placed and enforced."""

from __future__ import annotations

import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_plugins.api import PodUid
from partage_plugins.api.keys import GPU_MEMORY, GPU_MILLI
from rig.client.pods import Pod
from support.chain_stage import Chain
from support.isolation_stage import ask, seen

NO_MEMORY = "cuMemAlloc_v2 2"
PREFIX = "partage.dev/"


def shared(chain: Chain, name: str, milli: int = 500, gib: int = 4, **annotations: str) -> Pod:
    limits = {GPU_MILLI: str(milli), GPU_MEMORY: f"{gib}Gi"}
    notes = {f"{PREFIX}{key.replace('_', '-')}": value for key, value in annotations.items()}
    return chain.pod(name, limits=limits, annotations=notes)


def test_two_pods_share_a_card_and_each_is_held_to_its_part(chain: Chain) -> None:
    train, serve = shared(chain, "train", gib=4), shared(chain, "serve", gib=2)
    for pod in (train, serve):
        pod.wait_running()
    assert chain.grant(train).card == chain.grant(serve).card
    assert [seen(pod)["total"] for pod in (train, serve)] == [4096, 2048]
    assert ask(train, "take 3000") == "took 3000"
    assert ask(train, "take 2000") == NO_MEMORY
    assert ask(serve, "take 1500") == "took 1500"
    (held,) = chain.limits_of(train).cards
    assert held.share_milli == 500
    assert (held.card, held.limit_bytes) == (chain.grant(train).card, 4 << 30)
    drained = json.loads(chain.partage("drain", "--dry-run", chain.allocation(train).node, "-o", "json"))
    (other,) = {"n1", "n2"} - {train.node}
    assert {(each["pod"], each["state"], each["goes_to"]) for each in drained["pods"]} == {
        (f"{pod.namespace}/{pod.name}", "fits", other) for pod in (train, serve)
    }


def test_labels_put_pods_on_the_same_card_on_others_and_keep_strangers_off(chain: Chain) -> None:
    first = shared(chain, "first", 200, affinity="blue", anti_affinity="loud").wait_running()
    friend = shared(chain, "friend", 200, affinity="blue")
    rival = shared(chain, "rival", 200, anti_affinity="loud")
    alone = shared(chain, "alone", 1000, exclusion="green")
    for pod in (friend, rival, alone):
        pod.wait_running()
    cards = {pod.name: chain.grant(pod).card for pod in (first, friend, rival, alone)}
    assert cards["friend"] == cards["first"]
    assert cards["rival"] != cards["first"]
    assert cards["alone"] not in {cards[name] for name in ("first", "friend", "rival")}


def test_a_pod_that_fits_nowhere_says_why_and_runs_when_another_has_ended(chain: Chain) -> None:
    holders = [shared(chain, f"holder-{number}", 800, gib=8) for number in range(4)]
    for pod in holders:
        pod.wait_running()
    assert len({chain.grant(pod).card for pod in holders}) == 4
    waits = shared(chain, "waits", 300)
    assert waits.wait_why("0/2 nodes are available").startswith("0/2 nodes are available: ")
    told = json.loads(chain.partage("explain", f"{waits.namespace}/{waits.name}", "-o", "json"))
    explained = told["pod"]["explained"]
    assert {node["node"] for node in explained["nodes"] if node["reasons"]} == {"n1", "n2"}
    assert explained["helps"]
    holders[2].delete()
    waits.wait_running()
    assert chain.grant(waits).share_milli == 300
    assert seen(waits)["total"] == 4096


def test_a_forged_allocation_is_refused_on_the_node_which_takes_no_more_while_its_pod_is_there(chain: Chain) -> None:
    """The forged pod's holdings are unknown, so its request counts on each card of its node."""
    good = shared(chain, "good", 1000, gib=8).wait_running()
    forged = chain.pod("forged", limits={GPU_MILLI: "1000"}, scheduler="nobody")
    allocation = chain.allocation(good)
    wanted = type(allocation)(gen=1, pod=PodUid(forged.uid), node=allocation.node, containers=allocation.containers)
    chain.rig.cluster.bind(forged, allocation.node, wanted, signed_by=Ed25519PrivateKey.generate())
    assert "key" in forged.wait_waiting("CreateContainerError")
    elsewhere = [shared(chain, f"elsewhere-{number}", 1000, gib=8) for number in range(2)]
    for pod in elsewhere:
        pod.wait_running()
    waits = shared(chain, "waits", 1000, gib=8)
    waits.wait_why("0/2 nodes are available")
    forged.delete_and_wait()
    waits.wait_running()
    assert len({chain.grant(pod).card for pod in (good, *elsewhere, waits)}) == 4
