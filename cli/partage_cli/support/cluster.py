"""The cluster's part of a support bundle: findings on all nodes, cards, versions, roll-out, and our own pods' logs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Final

from partage_base.kube import ApiServer, pod_log_path, pods_path
from partage_cli import progress
from partage_cli.clusters import ask_cluster
from partage_cli.doctor.fleet import findings
from partage_cli.doctor.output import report
from partage_cli.nodes.command import cluster
from partage_cli.own_pods import OwnPod
from partage_cli.rollout.command import followed
from partage_cli.schedulers import all_told
from partage_cli.support.archive import Bundle
from partage_cli.support.log_lines import kept_lines
from partage_cli.support.redaction import plain_json
from partage_cli.versions.command import daemons
from partage_cli.versions.running import PART_OF
from partage_plugins.errors import PartageError

MOST_PODS: Final = 40
_LINES: Final = 2000
_LOG_BYTES: Final = 1 << 20
_AT_ONCE: Final = 8
_AT_A_TIME: Final = 500
_DEADLINE_S: Final = 30.0


def gather(bundle: Bundle, *, kubeconfig: Path | None, namespace: str, logs: bool) -> None:
    """Add each part independently: a missing one is recorded and does not affect the others."""
    try:
        bundle.add("cluster/doctor.json", plain_json(report([*findings(kubeconfig, namespace)])))
        ask_cluster(kubeconfig, lambda server: _asked(bundle, server, namespace, logs=logs), deadline_s=_DEADLINE_S)
    except PartageError as error:
        bundle.lacks("cluster", str(error))


async def _asked(bundle: Bundle, server: ApiServer, namespace: str, *, logs: bool) -> None:
    async def schedulers() -> object:
        """What the schedulers published, without the values of their variables."""
        return [
            {**_named(each.said), "variables": sorted(each.said.variables), "notes": each.notes}
            for each in await all_told(server, namespace)
        ]

    async def rollout() -> object:
        return (await followed(server, namespace, None, within_s=0))[0]

    pods: list[OwnPod] = []

    async def own_pods() -> object:
        listed = await server.list(pods_path(namespace), OwnPod, labels=PART_OF, limit=_AT_A_TIME)
        pods.extend(listed.items)
        return [_pod(each) for each in pods]

    parts: dict[str, Callable[[], Awaitable[object]]] = {
        "nodes": lambda: cluster(server, namespace=namespace, node=None),
        "versions": lambda: daemons(server, namespace=namespace),
        "schedulers": schedulers,
        "rollout": rollout,
        "pods": own_pods,
    }
    for name, ask in parts.items():
        progress.now(f"asking the API server for {name}")
        try:
            bundle.add(f"cluster/{name}.json", plain_json(await ask()))
        except PartageError as error:
            bundle.lacks(f"cluster/{name}.json", str(error))
    if logs:
        await _logs(bundle, server, namespace, pods)


def _named(said: object) -> dict[str, object]:
    return {name: getattr(said, name) for name in ("by", "version", "scheduler_name", "claims", "extends", "plugins")}


def _pod(pod: OwnPod) -> dict[str, object]:
    return {
        "name": pod.metadata.name,
        "node": pod.spec.node_name,
        "phase": pod.status.phase,
        "versions": [each.tag for each in pod.spec.containers],
        "containers": pod.status.container_statuses,
    }


async def _logs(bundle: Bundle, server: ApiServer, namespace: str, pods: Iterable[OwnPod]) -> None:
    """Logs of a limited number of containers, those of unhealthy pods first."""
    chosen = sorted(pods, key=lambda each: (_is_well(each), each.metadata.name))
    every = [(pod.metadata.name, each.name) for pod in chosen for each in pod.spec.containers]
    if len(every) > MOST_PODS:
        bundle.lacks("cluster/logs of others", f"there are {len(every)} containers, and logs of {MOST_PODS} are taken")
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(pod: str, container: str) -> None:
        name = f"cluster/logs/{pod}.{container}.jsonl"
        async with turns:
            try:
                path = pod_log_path(namespace, pod, container, lines=_LINES, most_bytes=_LOG_BYTES)
                kept = kept_lines((await server.text(path)).splitlines())
            except PartageError as error:
                bundle.lacks(name, str(error))
                return
        bundle.add(name, kept.text)
        if kept.left_out:
            bundle.lacks(f"{name}: some lines", f"{kept.left_out} lines are not in our daemons' form")

    await asyncio.gather(*(one(*each) for each in every[:MOST_PODS]))


def _is_well(pod: OwnPod) -> bool:
    states = [each.state for each in pod.status.container_statuses]
    return pod.status.phase == "Running" and not any(each.waiting or each.terminated for each in states)
