"""A rollout over twenty nodes, on a real API server: it stops at a failure, and resumes."""

from __future__ import annotations

import json
from random import Random

from partage_cli.rollout.node_state import INSTALLED
from real.rollout.conftest import NAMES
from rig.client.cluster import Cluster
from support.extent import is_all
from support.kube import until
from support.rollout_stage import V1, RolloutStage


def told(cluster: Cluster) -> dict[str, str]:
    """The state of each node that reports this version."""
    found = {
        node["metadata"]["name"]: node["metadata"].get("annotations", {}) for node in cluster.api.list("/api/v1/nodes")
    }
    said = {name: json.loads(annotations.get(INSTALLED, "{}")) for name, annotations in found.items()}
    return {name: each["state"] for name, each in said.items() if each.get("version") == V1}


async def until_all_are_in_force(cluster: Cluster) -> None:
    await until(lambda: list(told(cluster).values()) == ["in-force"] * len(NAMES))


async def test_twenty_nodes_stop_at_a_failure_with_no_more_node_touched_and_go_on_once_it_is_mended(
    cluster: Cluster, stage: RolloutStage
) -> None:
    for name in NAMES[5:]:  # any of these may be first
        stage.host(name).trouble = "crishim does not answer"
    stage.start("n00")
    await until(lambda: told(cluster).get("n00") == "in-force")
    stage.start(*NAMES[1:])
    await until(lambda: "failed" in told(cluster).values())
    await until(
        lambda: all(_says_stopped(cluster, name) for name, state in told(cluster).items() if state == "waiting")
    )
    touched, states = stage.touched, told(cluster)
    failed = [name for name, state in states.items() if state == "failed"]
    assert len(failed) == 1
    assert touched == sorted(name for name, state in states.items() if state in ("in-force", "failed"))
    for name in NAMES:
        stage.host(name).trouble = ""
    cluster.nodes.annotate(failed[0], {INSTALLED: None})
    await until_all_are_in_force(cluster)
    for name in NAMES:
        assert stage.host(name).touched == ["install", "switch-on"] * (2 if name in failed else 1)


async def test_installers_that_are_killed_again_and_again_bring_twenty_nodes_into_force_one_by_one(
    cluster: Cluster, stage: RolloutStage
) -> None:
    random, busiest = Random(7), 0  # noqa: S311
    stage.start(*NAMES)
    for _ in range(40 if is_all() else 10):
        at_work = sum(state == "working" for state in told(cluster).values())
        busiest = max(busiest, at_work)
        victims = random.sample(NAMES, 3)
        stage.kill(*victims)
        stage.start(*victims)
    await until_all_are_in_force(cluster)
    assert busiest <= 1
    assert all(host.in_force for host in stage.hosts.values())


def _says_stopped(cluster: Cluster, name: str) -> bool:
    return "stopped: " in cluster.nodes.annotations(name)[INSTALLED]
