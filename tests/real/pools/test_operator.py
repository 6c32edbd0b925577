"""Beside NVIDIA's operator: pods that monitor all cards keep them; a pod that asks for cards in vain is reported."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.identity.people import TEAM
from rig.rig import Rig
from support.chain_stage import Chain
from support.crishim_stage import IDLE
from support.pools_stage import NODE, native_pod

OPERATOR = "gpu-operator"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"


def asking(rig: Rig, name: str, namespace: str) -> Pod:
    """A pod that asks for all cards, as an exporter or a validator does."""
    made = a_pod(name, image="busybox", command=IDLE, env={VISIBLE: "all"})
    return rig.cluster.pods.create(namespace, made)


@pytest.fixture
def operators(rig: Rig) -> Iterator[str]:
    """The operator's namespace."""
    rig.cluster.create_namespace(OPERATOR)
    yield OPERATOR
    rig.cluster.delete_made()
    rig.cluster.delete_namespaces(OPERATOR)


def test_its_pods_keep_all_cards_and_others_that_ask_are_heard_of(chain: Chain, rig: Rig, operators: str) -> None:
    seen = {}
    for name, namespace in (("dcgm-exporter", operators), ("greedy", TEAM)):
        pod = asking(rig, name, namespace).wait_running()
        seen[name] = pod.exec("sh", "-c", f"echo ${VISIBLE}").strip()
    assert seen == {"dcgm-exporter": "all", "greedy": "void"}
    advertiser = chain.advertisers[NODE]
    advertiser.wait_event("ContainerGuarded", f"of pod {TEAM}/greedy asked for cards that nobody gave it")
    assert not any("dcgm-exporter" in event["message"] for event in advertiser.events())
    native_pod(chain, "beside").wait_running()
