"""`partage nodes` from the command line: a process, its output and its exit code."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from support import kubeconfigs
from support.fake_api import FakeApi, Refuse
from support.objects import lease_body, node_body
from unit.cli.doctor.made import FIRST, Made, inventory
from unit.cli.program import PARTAGE, environment, partage

pytestmark = pytest.mark.slow  # each test starts processes

LEASES = "/apis/coordination.k8s.io/v1/namespaces/partage-system/leases"


def kubeconfig(folder: Path, url: str) -> Path:
    return kubeconfigs.write(folder / "kubeconfig", server=url, user={"token": "t"})


def asked(
    folder: Path, api_has: dict[str, str | None], *words: str, refuse: int = 0
) -> subprocess.CompletedProcess[str]:
    """Runs `partage nodes` on a cluster of nodes with these inventories; the first has a heartbeat."""

    async def whole() -> subprocess.CompletedProcess[str]:
        async with FakeApi() as api:
            for name, text in api_has.items():
                api.objects.create("/api/v1/nodes", node_body(name, text))
            for name in list(api_has)[:1]:
                api.objects.create(LEASES, lease_body(name))
            if refuse:
                api.expect(Refuse(refuse), method="GET", times=9)
            argv = ("nodes", "--kubeconfig", str(kubeconfig(folder, api.url)), *words)
            return await asyncio.to_thread(partage, folder, *argv)

    return asyncio.run(whole())


def test_cards_on_stdout_and_the_rest_on_stderr(tmp_path: Path) -> None:
    done = asked(tmp_path, {"n1": inventory(), "cpu-1": None})
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["NODE", "n1", "n1"]
    assert done.stderr == "without an inventory: cpu-1\n"
    assert "\x1b" not in done.stdout


def test_an_inventory_that_cannot_be_read_is_3_and_hides_no_other(tmp_path: Path) -> None:
    done = asked(tmp_path, {"n1": inventory(), "n2": '{"v":1,"kinds":{"gpu":{"driver":7}}}'})
    assert done.returncode == 3
    assert "n1" in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "partage: node n2: its annotation partage.dev/inventory cannot be read: inventory: $.kinds.gpu"
    )


def test_an_empty_cluster_says_what_to_do(tmp_path: Path) -> None:
    done = asked(tmp_path, {})
    assert (done.returncode, done.stdout) == (0, "")
    assert "label nodes that have some" in done.stderr
    assert json.loads(asked(tmp_path, {}, "-o", "json").stdout)["nodes"] == []


def test_one_node_is_asked_for_by_its_name(tmp_path: Path) -> None:
    has: dict[str, str | None] = {"n1": inventory(), "n2": inventory()}
    assert [
        each["node"] for each in json.loads(asked(tmp_path, has, "--node", "n2", "-o", "json").stdout)["nodes"]
    ] == ["n2"]
    missing = asked(tmp_path, has, "--node", "n3")
    assert (missing.returncode, missing.stderr) == (
        1,
        "partage: there is no node n3; `kubectl get nodes` has their names [PTG201]\n",
    )
    escape = asked(tmp_path, has, "--node", "../pods")
    assert (escape.returncode, len(escape.stderr.splitlines())) == (1, 1)


@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_no_of_the_api_server_is_one_line(tmp_path: Path, status: int) -> None:
    done = asked(tmp_path, {"n1": inventory()}, refuse=status)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert str(status) in line


def test_no_access_is_one_line(tmp_path: Path) -> None:
    done = partage(tmp_path, "nodes", "--kubeconfig", str(tmp_path / "none"))
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)


def test_local_needs_no_api_server(tmp_path: Path) -> None:
    Made(tmp_path).with_cards()
    done = partage(tmp_path, "nodes", "--local", "-o", "json", "--node", "me")
    assert done.returncode == 0
    (node,) = json.loads(done.stdout)["nodes"]
    assert (node["node"], node["cards"][0]["id"], node["heartbeat"]) == ("me", FIRST, None)


def test_local_without_a_file_says_who_writes_it(tmp_path: Path) -> None:
    done = partage(tmp_path, "nodes", "--local")
    assert done.returncode == 1
    why = "is not there; does partage-advertiser run on this node?"
    assert done.stderr == f"partage: {tmp_path}/run/partage/inventory.json {why} [PTG201]\n"


def test_local_with_a_broken_file_is_3(tmp_path: Path) -> None:
    Made(tmp_path).write("run/partage/inventory.json", "{")
    assert partage(tmp_path, "nodes", "--local").returncode == 3


@pytest.mark.parametrize(("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)])
def test_colours_are_for_terminals_that_want_them(tmp_path: Path, more: dict[str, str], *, coloured: bool) -> None:
    Made(tmp_path).with_cards()
    code = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
    argv = [sys.executable, "-c", code, *PARTAGE, "--root", str(tmp_path), "nodes", "--local"]
    settings = {key: value for key, value in environment(**more).items() if key != "NO_COLOR" or key in more}
    done = subprocess.run(argv, env=settings, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert ("\x1b[32m" in done.stdout) is coloured
