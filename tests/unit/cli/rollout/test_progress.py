"""The progress of a roll-out, in one table and one line."""

from __future__ import annotations

import asyncio
import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from partage_base.kube import ApiServer, leases_path, micro_time, nodes_path, pods_path
from partage_cli.nodes.command import cluster as nodes_of_cluster
from partage_cli.rollout.command import followed, image_version
from partage_cli.rollout.node_state import INSTALLED, DesiredState, Member, State, telling
from partage_cli.rollout.order import Stoppage
from partage_cli.rollout.progress import as_line, as_table, progress
from partage_cli.tables import as_json
from partage_plugins.api.inventory import Ready
from partage_plugins.api.keys import INVENTORY
from partage_plugins.testing.examples import inventory
from support.fake_api import FakeApi, Refuse
from support.rollout_stage import V1, V2, a_made_up_node
from unit.cli.nodes.test_command import kubeconfig
from unit.cli.program import partage

DAEMON_SETS = "/apis/apps/v1/namespaces/partage-system/daemonsets"


def a_member(name: str, state: State | None = None, *, version: str = V1, off: bool = False, why: str = "") -> Member:
    wish = DesiredState.OFF if off else DesiredState.ON
    return Member(name=name, wish=wish, told=None if state is None else telling(version, wish, state, why))


def test_a_row_for_each_node_says_how_far_it_is_and_why() -> None:
    found = progress([a_member("n1", "failed", why="no room\x1b[2J"), a_member("n2")], "", V1)
    rows = [line.split() for line in as_table(found).splitlines()]
    assert rows[0] == ["NODE", "VERSION", "STATE", "WHY"]
    assert rows[1:] == [["n1", V1, "failed", "no", "room", "[2J"], ["n2", "-", "-", "-"]]


@pytest.mark.parametrize(
    ("members", "line"),
    [
        ([], "no node is labelled: kubectl label node NODE partage.dev/install=yes"),
        ([a_member("n1")], "1 nodes are labelled, and no installer has spoken yet"),
        (
            [a_member("n1", "working"), replace(a_member("n2", "waiting"), is_canary=True), a_member("n3")],
            (
                f"0 of 3 nodes are as asked at {V1}; 1 waiting; 1 working; 1 not heard of at this version; "
                "the canary is n2"
            ),
        ),
        (
            [a_member("n1", "in-force"), a_member("n2", "off", off=True)],
            f"2 of 2 nodes are as asked at {V1}",
        ),
        (
            [a_member("n1", "in-force"), a_member("n2", "failed", why="no"), a_member("n3", "waiting")],
            f"1 of 3 nodes are as asked at {V1}; 1 failed; 1 waiting; stopped: n2 failed: no",
        ),
    ],
)
def test_one_line_says_it_all(members: list[Member], line: str) -> None:
    assert as_line(progress(members, "n1", None)) == line


def test_it_is_done_when_each_node_is_as_asked_at_the_version_that_is_meant() -> None:
    members = [a_member("n1", "in-force"), a_member("n2", "off", off=True)]
    assert progress(members, "", V1).is_done
    assert not progress(members, "", V2).is_done
    assert not progress([*members, a_member("n3", "in-force", off=False, version=V2)], "", V1).is_done


def test_without_a_version_it_is_the_one_that_the_most_nodes_speak_of() -> None:
    members = [a_member("n1", "in-force"), a_member("n2", "waiting", version=V2), a_member("n3", "waiting", version=V2)]
    assert progress(members, "", None).version == V2


def test_programs_are_told_the_same() -> None:
    found = json.loads(as_json(progress([a_member("n1", "failed", why="no")], "", V1)))
    assert found == {
        "version": V1,
        "nodes": [{"node": "n1", "version": V1, "state": "failed", "why": "no"}],
        "stopped": {"node": "n1", "why": "failed: no"},
        "canary": None,
    }


@pytest.mark.parametrize(
    ("image", "version"),
    [
        (f"registry.example:5000/partage-node:{V1}", V1),
        (f"partage-node:{V1}", V1),
        (f"registry.example:5000/partage-node@sha256:{'0' * 64}", None),
        (f"registry.example/partage-node:{V1}@sha256:{'0' * 64}", V1),
        ("registry.example:5000/partage-node", None),
    ],
)
async def test_the_tag_of_the_installers_image_is_the_version_that_is_meant(
    api: FakeApi, server: ApiServer, image: str, version: str | None
) -> None:
    assert await image_version(server, "partage-system") is None
    spec = {"template": {"spec": {"containers": [{"name": "installer", "image": image}]}}}
    api.objects.create(DAEMON_SETS, {"metadata": {"name": "partage-installer"}, "spec": spec})
    assert await image_version(server, "partage-system") == version


async def test_waiting_ends_at_once_where_nothing_is_labelled(api: FakeApi, server: ApiServer) -> None:
    found, is_over = await followed(server, "partage-system", None, within_s=3600)
    assert (is_over, as_line(found)) == (True, "no node is labelled: kubectl label node NODE partage.dev/install=yes")


@pytest.mark.slow  # it starts a process
def test_waiting_for_nothing_is_no_success(tmp_path: Path) -> None:
    async def whole() -> subprocess.CompletedProcess[str]:
        async with FakeApi() as api:
            argv = ("rollout", "--wait", "--kubeconfig", str(kubeconfig(tmp_path, api.url)))
            return await asyncio.to_thread(partage, tmp_path, *argv)

    done = asyncio.run(whole())
    assert (done.returncode, done.stderr) == (
        1,
        "no node is labelled: kubectl label node NODE partage.dev/install=yes\n",
    )


@pytest.mark.slow  # as above
def test_an_api_server_that_is_away_is_said_in_one_line(tmp_path: Path) -> None:
    done = partage(tmp_path, "rollout", "--kubeconfig", str(kubeconfig(tmp_path, "http://127.0.0.1:1")))
    (line,) = done.stderr.splitlines()
    assert (done.returncode, "127.0.0.1" in line, done.stdout) == (1, True, "")


async def test_a_node_is_in_force_only_where_the_cluster_sees_it_so(api: FakeApi, server: ApiServer) -> None:
    node = a_made_up_node("n1")
    away = inventory(Ready(broker=True, why="kubelet does not speak through crishim"))
    node["metadata"]["annotations"] = {INSTALLED: telling(V1, DesiredState.ON, "in-force").text(), INVENTORY: away}
    api.objects.create(nodes_path(), node)
    beat = {"holderIdentity": "n1", "leaseDurationSeconds": 40, "renewTime": micro_time(datetime.now(UTC))}
    api.objects.create(leases_path("partage-system"), {"metadata": {"name": "n1"}, "spec": beat})
    found, is_over = await followed(server, "partage-system", None, within_s=0)
    assert not is_over
    assert as_line(found) == f"0 of 1 nodes are as asked at {V1}; 1 not-in-force"
    (shown,) = found.nodes
    assert (shown.state, shown.why) == ("not-in-force", "kubelet does not speak through crishim")
    report = await nodes_of_cluster(server, namespace="partage-system", node=None)
    assert shown.why == report.nodes[0].why == report.why_not("n1"), "as `partage nodes` says it"
    api.objects.patch(f"{nodes_path()}/n1", {"metadata": {"annotations": {INVENTORY: inventory()}}})
    found, is_over = await followed(server, "partage-system", None, within_s=0)
    assert (found.nodes[0].state, is_over) == ("in-force", True)


def an_installer(node: str, phase: str = "Running", **status: Any) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "partage-installer", "app.kubernetes.io/component": "installer"}
    return {
        "metadata": {"name": f"partage-installer-{node}", "labels": labels},
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": phase, "containerStatuses": [status] if status else []},
    }


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (None, "no installer is on it: kubectl -n partage-system describe daemonset partage-installer"),
        (
            an_installer("n1"),
            (
                "its installer runs and has said nothing; does it reach the API server? "
                "kubectl -n partage-system logs partage-installer-n1"
            ),
        ),
        (
            an_installer("n1", "Pending", state={"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}),
            "its installer waits: ImagePullBackOff no such tag",
        ),
        (
            an_installer(
                "n1",
                state={"waiting": {"reason": "CrashLoopBackOff"}},
                lastState={"terminated": {"exitCode": 78, "message": "x\nlease_s is 0; allowed: from 3\n"}},
            ),
            "its installer ended with exit code 78: lease_s is 0; allowed: from 3",
        ),
        (an_installer("n1", "Pending"), "its installer is Pending: partage-installer-n1"),
    ],
)
async def test_a_node_that_was_not_heard_of_is_said_why(
    api: FakeApi, server: ApiServer, pod: dict[str, Any] | None, why: str
) -> None:
    api.objects.create(nodes_path(), a_made_up_node("n1"))
    if pod is not None:
        api.objects.create(pods_path("partage-system"), pod)
    found, _ = await followed(server, "partage-system", V1, within_s=0)
    assert [(each.state, each.why) for each in found.nodes] == [(None, why)]
    api.expect(Refuse(403), under=pods_path("partage-system"))
    found, _ = await followed(server, "partage-system", V1, within_s=0)
    assert found.nodes[0].why == "its installer's pod may not be seen with these credentials"


async def test_waiting_ends_where_it_stopped(api: FakeApi, server: ApiServer) -> None:
    node = a_made_up_node("n1")
    node["metadata"]["annotations"] = {INSTALLED: telling(V1, DesiredState.ON, "failed", "no").text()}
    api.objects.create(nodes_path(), node)
    found, is_over = await followed(server, "partage-system", None, within_s=60)
    assert is_over
    assert found.stopped == Stoppage("n1", "failed: no")


async def test_one_at_work_with_the_lease_stops_nothing(api: FakeApi, server: ApiServer) -> None:
    node = a_made_up_node("n1")
    node["metadata"]["annotations"] = {INSTALLED: telling(V1, DesiredState.ON, "working").text()}
    api.objects.create(nodes_path(), node)
    labels = {"app.kubernetes.io/name": "partage-installer", "app.kubernetes.io/component": "rollout"}
    metadata = {"name": "partage-rollout-0", "labels": {**labels, "app.kubernetes.io/part-of": "partage"}}
    lease = {"metadata": metadata, "spec": {"holderIdentity": "n1", "leaseDurationSeconds": 60}}
    api.objects.create(leases_path("partage-system"), lease)
    found, is_over = await followed(server, "partage-system", None, within_s=0)
    assert (found.stopped, is_over) == (None, False)
