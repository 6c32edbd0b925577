"""A pod is suspended for one of a higher priority in place of being deleted, and goes on afterwards as before."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from partage_plugins.api.keys import CARDS, GPU_MEMORY, GPU_MILLI, SUSPEND
from rig.client.pods import Pod
from rig.client.resources import PRIORITY_CLASSES
from rig.client.wait import until
from support.chain_stage import Chain
from support.isolation_stage import ask

HIGH = "partage-test-high"


@pytest.fixture
def high(chain: Chain) -> Iterator[str]:
    """A priority class."""
    api = chain.rig.cluster.api
    api.create(PRIORITY_CLASSES.at(), {"metadata": {"name": HIGH}, "value": 1000, "description": "for a test"})
    yield HIGH
    api.delete(PRIORITY_CLASSES.at(name=HIGH))


def is_suspended(chain: Chain, pod: Pod) -> bool:
    (card,) = chain.limits_of(pod).cards
    return card.moving is not None and card.moving.is_suspended


def test_it_makes_room_waits_over_restarts_of_all_daemons_and_goes_on(chain: Chain, high: str) -> None:
    low = chain.pod("low", limits={GPU_MILLI: "900", GPU_MEMORY: "4Gi"}, annotations={SUSPEND: "allowed"})
    low.wait_running()
    name, there = f"{low.namespace}/{low.name}", {CARDS: chain.grant(low).card}
    assert ask(low, "take 1000") == "took 1000"

    limits = {GPU_MILLI: "600", GPU_MEMORY: "2Gi"}
    new = chain.pod("new", limits=limits, annotations=there, spec={"priorityClassName": high}).wait_running()
    assert is_suspended(chain, low)
    low.wait_event(" Suspended ")
    assert (
        f"suspended for pod {new.namespace}/{new.name}"
        in json.loads(chain.partage("explain", name, "-o", "json"))["pod"]["message"]
    )

    node = chain.rig.nodes[low.node or ""]
    for daemon in ("advertiser", "broker", "crishim", "scheduler"):
        chain.restart(daemon, node)
    beside = chain.pod("beside", limits={GPU_MILLI: "300", GPU_MEMORY: "1Gi"}, annotations=there)
    beside.wait_why("GPU share")
    assert is_suspended(chain, low)
    assert chain.allocation(low).suspended is not None
    assert ask(new, "take 1000") == "took 1000"

    new.delete_and_wait(grace_s=0)
    low.wait_event(" Resumed ")
    until("it is back", lambda: "it is suspended" if is_suspended(chain, low) else None)
    assert ask(low, "take 1") == "took 1"
    assert chain.limits_of(low).gen == 3
    assert low.refresh()["status"]["containerStatuses"][0]["restartCount"] == 0
    beside.wait_why("GPU share")
