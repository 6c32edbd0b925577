"""Queries the brokers of all nodes by proxy requests to the advertisers' pages, each within a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Struct

from partage_base.kube import ApiServer, KubeError, Node, nodes_path, pod_page_path, pods_path
from partage_cli import progress
from partage_cli.own_pods import OwnPod
from partage_isolation.wire.messages import BrokerReport, Rejection, read_answer
from partage_plugins.api.keys import INVENTORY
from partage_plugins.errors import DecodeError, Refused

AT_ONCE: Final = 32
WITHIN_S: Final = 8.0
"""For one node; an advertiser answers within three seconds, even if its broker doesn't."""
_ALL_WITHIN_S: Final = 120.0
_ADVERTISERS: Final = "app.kubernetes.io/name=partage-advertiser"
PAGE: Final = "broker"
_AT_A_TIME: Final = 500
_NO_TIME: Final = "it was not asked: other nodes took too long"
_NO_POD: Final = "no pod of the advertiser runs there, which would ask its broker"


class AllReports(Struct, frozen=True, kw_only=True):
    at: datetime
    told: Mapping[str, BrokerReport]
    """By node."""
    silent: Mapping[str, str] = {}
    """Nodes without an answer, and why."""


async def ask_nodes(server: ApiServer, *, namespace: str, only: Iterable[str]) -> AllReports:
    """Query the named nodes, or all with devices; raises `KubeError`, and `Refused` for an unknown node."""
    nodes, pods = await asyncio.gather(
        server.list(nodes_path(), Node, limit=_AT_A_TIME),
        server.list(pods_path(namespace), OwnPod, labels=_ADVERTISERS, limit=_AT_A_TIME),
    )
    there = {node.metadata.name: INVENTORY in node.metadata.annotations for node in nodes.items}
    if unknown := [name for name in only if name not in there]:
        raise Refused(f"there is no node {unknown[0]}; `kubectl get nodes` has their names")
    names = sorted(only) or sorted(name for name, tells in there.items() if tells)
    pod_on = {each.spec.node_name: each.metadata.name for each in pods.items if _answers(each)}
    turns = asyncio.Semaphore(AT_ONCE)
    clock, left = asyncio.get_running_loop().time, sum(name in pod_on for name in names)
    until = clock() + _ALL_WITHIN_S

    async def asked(name: str) -> BrokerReport | str:
        nonlocal left
        if name not in pod_on:
            return _NO_POD
        async with turns:
            answer = (
                await ask_broker(server, pod_page_path(namespace, pod_on[name], PAGE)) if clock() < until else _NO_TIME
            )
        left -= 1
        progress.now(f"asking the brokers of {len(names)} nodes, {left} are left")
        return answer

    answers = dict(zip(names, await asyncio.gather(*map(asked, names)), strict=True))
    return AllReports(
        at=datetime.now(UTC),
        told={name: each for name, each in answers.items() if isinstance(each, BrokerReport)},
        silent={name: each for name, each in answers.items() if isinstance(each, str)},
    )


def _answers(pod: OwnPod) -> bool:
    return pod.status.phase == "Running" and not pod.metadata.deletion_timestamp


async def ask_broker(server: ApiServer, path: str) -> BrokerReport | str:
    """The broker's report, or the reason why there is none."""
    try:
        answer = read_answer(bytes(await server.get(path, msgspec.Raw)))
    except (KubeError, DecodeError) as error:
        return str(error)
    if isinstance(answer, BrokerReport):
        return answer
    return answer.why if isinstance(answer, Rejection) else "its broker answered another question than was asked"
