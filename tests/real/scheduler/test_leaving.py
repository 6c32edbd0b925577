"""Pods leave their nodes on a real API server: preempted by a higher priority, and evicted from lost cards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partage_plugins.api.keys import GPU_MILLI, INVENTORY
from real.scheduler.conftest import CARDS
from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.client.resources import Resource
from rig.client.wait import until
from rig.identity.people import TEAM
from support.gpu_fleet import card
from support.objects import of_cards, written
from support.scheduler_process import SchedulerProcess

OURS = "partage-scheduler"
BUDGETS = Resource("policy/v1", "poddisruptionbudgets")


def shared(cluster: Cluster, name: str, milli: int, **spec: Any) -> Pod:
    manifest = a_pod(name, scheduler=OURS, limits={GPU_MILLI: str(milli)}, labels={"app": name})
    manifest["spec"] |= spec
    return cluster.pods.create(TEAM, manifest)


def reasons(pod: Pod) -> set[str]:
    return {event.reason for event in pod.events()}


def is_going(pod: Pod) -> str | None:
    return None if pod.refresh()["metadata"].get("deletionTimestamp") else "nobody deleted it"


def test_a_pod_on_a_lost_card_is_evicted_as_its_budget_allows(
    bare: Cluster, node: Callable[[str], None], scheduler: SchedulerProcess
) -> None:
    node("n1")
    scheduler.start("--evict-lost", "--evict-after-s", "0")
    pod = shared(bare, "p", 500)
    pod.wait_bound()
    bare.api.patch(pod.path("status"), {"status": {"phase": "Running"}})
    match = {"selector": {"matchLabels": {"app": "p"}}, "minAvailable": 1}
    budget = BUDGETS.at(TEAM, "p")
    bare.api.create(BUDGETS.at(TEAM), {"metadata": {"name": "p"}, "spec": match})
    lost = of_cards(card(f"GPU-n1-{n}", health="lost") for n in range(CARDS))
    bare.nodes.annotate("n1", {INVENTORY: written(lost)})
    until("it is told", lambda: None if "CardLost" in reasons(pod) else "it is not", 20)
    until("its budget says no", lambda: None if "is not evicted yet" in scheduler.said else "nobody asked", 20)
    assert not pod.refresh()["metadata"].get("deletionTimestamp")
    status = {
        "observedGeneration": 1,
        "disruptionsAllowed": 1,
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "expectedPods": 2,
    }
    bare.api.patch(f"{budget}/status", {"status": status})
    until("it is evicted", lambda: is_going(pod), 40)
    bare.api.delete(budget)
