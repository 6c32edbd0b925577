"""On a machine that is not a node the doctor says so, and checks the cluster."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from partage_cli.doctor.elsewhere import is_no_node
from partage_plugins.api.inventory import Ready
from partage_plugins.testing.examples import inventory
from support.fake_api import FakeApi
from support.kube import until
from support.objects import lease_body, node_body
from support.scheduler_stage import LEASES, NODES, scheduler, settings_below
from unit.cli.doctor.made import Made
from unit.cli.nodes.test_command import kubeconfig
from unit.cli.program import partage

AWAY = "kubelet does not speak through crishim"


def asked(root: Path, nodes: dict[str, Ready | None]) -> subprocess.CompletedProcess[str]:
    """Run by a user with a kubeconfig, on a cluster of nodes that should be in force."""

    async def whole() -> subprocess.CompletedProcess[str]:
        async with FakeApi() as api:
            for name, ready in nodes.items():
                text = None if ready is None else inventory(ready)
                api.objects.create(NODES, node_body(name, text, {"partage.dev/install": "yes"}))
                api.objects.create(LEASES, lease_body(name))
            async with scheduler(api, settings_below(root / "scheduler")) as running:
                await until(lambda: running.parts.elector is not None and running.parts.elector.leads)
            here = root / "here"
            here.mkdir()
            argv = ("doctor", "-o", "json", "--kubeconfig", str(kubeconfig(here, api.url)))
            return await asyncio.to_thread(partage, here, *argv)

    return asyncio.run(whole())


@pytest.mark.slow  # it starts a process
def test_the_cluster_is_looked_at_and_nothing_of_the_machine_is_called_wrong(tmp_path: Path) -> None:
    well = Ready(crishim=True, broker=True)
    done = asked(tmp_path, {"n1": well, "n2": Ready(broker=True, why=AWAY), "n3": None})
    findings = [(each["check"], each["status"], each["found"]) for each in json.loads(done.stdout)["findings"]]
    assert done.returncode == 3
    assert findings[0] == ("here", "not checked", "this machine is no node: the cluster was looked at instead")
    assert findings[1][:2] == ("scheduler", "ok")
    assert findings[2:] == [
        ("in-force", "wrong", f"node n2 is not in force: {AWAY}"),
        ("in-force", "wrong", "node n3 is not in force: its advertiser has not said what it has"),
    ]


@pytest.mark.slow  # as above
def test_a_cluster_that_is_well_is_so(tmp_path: Path) -> None:
    done = asked(tmp_path, {"n1": Ready(crishim=True, broker=True)})
    assert (done.returncode, json.loads(done.stdout)["findings"][-1]["found"]) == (0, "1 nodes, all in force")


@pytest.mark.slow  # as above
def test_without_access_it_says_what_to_give_it(tmp_path: Path) -> None:
    done = partage(tmp_path, "doctor", "-o", "json", "--kubeconfig", str(tmp_path / "none"))
    here, api = json.loads(done.stdout)["findings"]
    assert (done.returncode, here["check"], api["check"], api["status"]) == (0, "here", "api", "not checked")
    assert "--kubeconfig" in api["advice"]


def test_a_machine_with_a_kubelet_or_anything_of_partage_is_a_node(tmp_path: Path) -> None:
    assert is_no_node(Made(tmp_path / "none").node)
    assert not is_no_node(Made(tmp_path / "kubelet").with_kubelet().node)
    assert not is_no_node(Made(tmp_path / "files").with_kubeadm().node)
    assert not is_no_node(Made(tmp_path / "cards").with_cards().node)
