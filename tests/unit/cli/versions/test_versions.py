"""`partage versions`: a line for each version of each daemon, as they report it."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from partage_base.kube import pods_path
from partage_base.version import VERSION
from partage_cli.rollout.node_state import INSTALLED, DesiredState, telling
from partage_plugins.api.keys import VERSIONS
from partage_plugins.testing.examples import inventory
from support.fake_api import FakeApi
from support.kube import until
from support.objects import lease_body, node_body, pod_body
from support.scheduler_stage import LEASES, NODES, OURS, scheduler, settings_below
from unit.cli.nodes.test_command import kubeconfig
from unit.cli.program import partage

pytestmark = pytest.mark.slow  # each test starts processes


def add_node(api: FakeApi, name: str, versions: str | None, *, age_s: float = 0) -> None:
    notes = {INSTALLED: telling("0.2.0-g1", DesiredState.ON, "in-force").text()}
    api.objects.create(NODES, node_body(name, inventory(), {"partage.dev/install": "yes"}, annotations=notes))
    api.objects.create(LEASES, lease_body(name, {} if versions is None else {VERSIONS: versions}, age_s=age_s))


def add_pod(api: FakeApi, name: str, image: str) -> None:
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "partage"}
    pod = pod_body(name, labels, namespace=OURS, node="n1", containers=[{"name": "main", "image": image}])
    api.objects.create(pods_path(OURS), pod)


def asked(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    async def whole() -> subprocess.CompletedProcess[str]:
        async with FakeApi() as api:
            api.objects.create(NODES, {"metadata": {"name": "cpu-1"}})
            add_node(api, "n1", "advertiser=0.2.0,broker=0.1.9,crishim=0.2.0")
            add_node(api, "n2", "advertiser=0.2.0,broker=0.2.0,crishim=0.2.0")
            add_node(api, "n3", None, age_s=86_400)
            add_pod(api, "partage-dra", "registry.example:5000/partage-node:0.2.0-g1")
            add_pod(api, "partage-sharepods", f"partage-scheduler@sha256:{'0' * 64}")
            async with scheduler(api, settings_below(root)) as running:
                await until(lambda: running.parts.elector is not None and running.parts.elector.leads)
            argv = ("versions", "--kubeconfig", str(kubeconfig(root, api.url)), *words)
            return await asyncio.to_thread(partage, root, *argv)

    return asyncio.run(whole())


def test_each_version_of_each_daemon_has_a_line_with_where_it_runs(tmp_path: Path) -> None:
    done = asked(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in done.stdout.splitlines()]
    assert rows[0] == ["DAEMON", "VERSION", "WHERE"]
    (leads,) = [row for row in rows if row[0] == "scheduler"]
    assert (leads[1], leads[2].endswith(", which leads")) == (VERSION, True)
    (silent,) = [row for row in rows if row[:2] == ["advertiser", "unknown"]]
    assert silent[2].startswith("n3 (")
    assert [row for row in rows[1:] if row not in (leads, silent)] == [
        ["advertiser", "0.2.0", "n1, n2"],
        ["broker", "0.1.9", "n1"],
        ["broker", "0.2.0", "n2"],
        ["command line", VERSION, "here"],
        ["crishim", "0.2.0", "n1, n2"],
        ["dra", "0.2.0-g1", "n1"],
        ["installer", "0.2.0-g1", "n1, n2, n3"],
        ["sharepods", "unknown", "n1"],
    ]


def test_programs_get_the_same(tmp_path: Path) -> None:
    told = json.loads(asked(tmp_path, "-o", "json").stdout)
    assert {"daemon": "broker", "version": "0.1.9", "where": ["n1"]} in told["daemons"]
