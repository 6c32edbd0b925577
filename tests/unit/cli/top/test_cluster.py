"""`partage top` for a cluster: all nodes' figures in one table; a silent node hides no other."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from partage_base.kube import ApiServer
from partage_cli.top.nodes import AllReports, ask_nodes
from partage_isolation.wire.messages import BrokerReport, Rejection, answer_line
from partage_plugins.errors import Refused
from support.broker import container, held, pod, time_told, told
from support.fake_api import Drop, FakeApi, Refuse, Say
from support.kube import access_to
from support.objects import advertiser_body, node_body
from unit.cli.nodes.test_command import kubeconfig
from unit.cli.program import partage

OURS = "partage-system"
SKILL = Path(__file__).parents[4] / "skills/read-partage-top/SKILL.md"
PODS = f"/api/v1/namespaces/{OURS}/pods"


def add_node(api: FakeApi, name: str, *, phase: str = "Running", tells: bool = True) -> None:
    """Adds a node, with an advertiser's pod if a phase is given."""
    api.objects.create("/api/v1/nodes", node_body(name, "{}" if tells else None))
    if phase:
        api.objects.create(PODS, advertiser_body(name, phase))


def says(api: FakeApi, name: str, answer: BrokerReport | Rejection) -> None:
    api.expect(Say(answer_line(answer)), under=f"{PODS}/advertiser-{name}/proxy/broker", times=9)


def told_of(name: str) -> BrokerReport:
    return told(container(pod(name), held(refused=3, time=time_told(1.0, 0.25))))


async def asked(api: FakeApi, *only: str) -> AllReports:
    async with ApiServer(access_to(api.url), user_agent="test") as server:
        return await ask_nodes(server, namespace=OURS, only=only)


async def test_a_node_that_is_silent_hides_no_other(api: FakeApi) -> None:
    for name in ("away", "cut", "n1", "n2", "odd", "refuses"):
        add_node(api, name)
    add_node(api, "without-pod", phase="")
    add_node(api, "starting", phase="Pending")
    add_node(api, "cpu-1", tells=False)
    for name in ("n1", "n2"):
        says(api, name, told_of(name))
    says(api, "refuses", Rejection(why="only root on the node may ask the broker"))
    page = f"{PODS}/advertiser-{{}}/proxy/broker"
    api.expect(Refuse(503, body=b"no broker answers: Connection refused\n"), under=page.format("away"))
    api.expect(Say(b'{"answer":"other"}\n'), under=page.format("odd"))
    api.expect(Drop(), under=page.format("cut"))
    found = await asked(api)
    assert found.told == {name: told_of(name) for name in ("n1", "n2")}
    assert sorted(found.silent) == ["away", "cut", "odd", "refuses", "starting", "without-pod"]
    assert "no broker answers: Connection refused" in found.silent["away"]
    assert "answer of the broker" in found.silent["odd"]
    assert found.silent["refuses"] == "only root on the node may ask the broker"
    assert found.silent["starting"] == "no pod of the advertiser runs there, which would ask its broker"


async def test_only_nodes_that_are_named_are_asked_and_those_must_be_there(api: FakeApi) -> None:
    for name in ("n1", "n2"):
        add_node(api, name)
        says(api, name, told_of(name))
    assert (await asked(api, "n2")).told == {"n2": told_of("n2")}
    assert api.count(under=f"{PODS}/advertiser-n1") == 0
    with pytest.raises(Refused, match="there is no node n99"):
        await asked(api, "n2", "n99")


def typed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    async def whole() -> subprocess.CompletedProcess[str]:
        async with FakeApi() as api:
            add_node(api, "n1")
            add_node(api, "n2", phase="")
            says(api, "n1", told_of("train-0"))
            argv = ("top", "--kubeconfig", str(kubeconfig(folder, api.url)), *words)
            return await asyncio.to_thread(partage, folder, *argv)

    return asyncio.run(whole())


@pytest.mark.slow  # it starts processes
@pytest.mark.parametrize("words", [(), ("--cluster",)])
def test_where_no_broker_is_the_cluster_is_shown(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = typed(tmp_path, *words)
    assert f"{done.stdout}{done.stderr}" in SKILL.read_text(), "people are shown another answer"
    header, row = done.stdout.splitlines()
    assert header.split() == ["NODE", "CARD", "CONTAINER", "SHARE", "GOT", "MEMORY", "LIMIT", "REFUSED"]
    assert [cell.strip() for cell in row.split("   ") if cell.strip()] == [
        *("n1", "0 GPU-5a1e3c8e", "team-a/train-0/main", "50 %", "25 %", "5 GiB", "8 GiB", "3"),
    ]
    assert done.stderr == "n2 does not answer: no pod of the advertiser runs there, which would ask its broker\n"
    assert done.returncode == 3


@pytest.mark.slow  # it starts a process
def test_programs_get_each_node_as_it_tells_itself(tmp_path: Path) -> None:
    found = json.loads(typed(tmp_path, "--node", "n1", "-o", "json").stdout)
    (node,) = found["nodes"]
    assert (node["node"], node["containers"][0]["cards"][0]["refused"], found["silent"]) == ("n1", 3, {})
