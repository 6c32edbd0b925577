"""A tree runs where nothing else exists: no libc, no shell, no Python, no /proc."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from partage_bundle import cache, layer
from partage_bundle.process import ROOT
from real.bundle.conftest import HERE, Root

MOST_BYTES = 100_000_000
MOST_PACKED_BYTES = 30_000_000
HOST = """
import asyncio, json
from partage_plugins.host import HostSettings, PluginHost

async def main():
    host = PluginHost(HostSettings(node="n1", root="/", blocked=frozenset()))
    started = await host.start()
    await host.stop()
    print(json.dumps({"kinds": sorted(started.kinds), "faults": started.faults}))

asyncio.run(main())
"""
NVML = """
import socket, subprocess
from partage_gpu.nvml import process, wire

ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
subprocess.run([*process.COMMAND, "/"], stdin=theirs, check=True)
print(wire.WORDS.told(ours.recv(wire.MAX_BYTES)))
"""
CLEAN = """
import json, sys
import partage_cli.main, partage_crishim.cli
print(json.dumps([sys.path, sys.flags.no_user_site, [module.__cached__ for module in sys.modules.values()
    if getattr(module, "__cached__", None) and not __import__("os").path.exists(module.__cached__)]]))
"""


@pytest.fixture(params=["node", "scheduler"])
def root(request: pytest.FixtureRequest) -> Root:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Root)
    return found


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_each_program_speaks_in_an_empty_root(root: Root, flag: str) -> None:
    assert "partage" in root.programs
    for program in root.programs:
        done = root.run(program, flag)
        assert (done.returncode, done.stderr) == (0, ""), program
        assert "partage" in done.stdout


def test_nodes_and_the_scheduler_have_their_own_programs(node: Root, scheduler: Root) -> None:
    of_nodes, of_schedulers = set(node.programs), set(scheduler.programs)
    assert of_nodes & of_schedulers == {"partage", "kubectl-partage"}
    assert {"partage-advertiser", "partage-broker", "partage-crishim", "partage-dra"} <= of_nodes
    assert of_schedulers - of_nodes == {"partage-scheduler", "partage-sharepods", "partage-ui"}


@pytest.mark.parametrize("program", ["partage-advertiser", "partage-broker", "partage-crishim", "partage-dra"])
def test_a_daemon_says_its_settings(node: Root, program: str) -> None:
    done = node.run(program, "--print-config")
    assert done.returncode == 0, done.stderr
    assert "root" in done.stdout


def test_the_doctor_finds_what_is_wrong_and_ends_in_order(node: Root) -> None:
    done = node.run("partage", "doctor", "--node-name", "n1")
    assert (done.returncode, "Traceback" in done.stderr) == (3, False), done.stderr
    assert "crishim" in done.stdout


def test_the_child_that_runs_plugins_starts_and_has_all_of_them(node: Root) -> None:
    assert json.loads(node.python(HOST)) == {"kinds": ["gpu"], "faults": []}


def test_the_child_that_asks_the_driver_starts(node: Root) -> None:
    """Without a driver it reports that there is none."""
    assert node.python(NVML).startswith("Ended")


def test_nothing_of_the_node_s_system_is_looked_at_and_nothing_is_compiled_again(root: Root) -> None:
    script = CLEAN if "partage-crishim" in root.programs else CLEAN.replace("crishim", "scheduler")
    searched, _, uncompiled = json.loads(root.python(script))
    assert [path for path in searched if not path.startswith(f"/opt/partage/{root.version}/")] == []
    assert uncompiled == []


def test_the_manifest_has_every_file_as_it_is_and_running_adds_none(root: Root) -> None:
    lines = (root.tree / "MANIFEST").read_text().splitlines()
    there = {str(path.relative_to(root.tree)): path for path in root.tree.rglob("*") if not path.is_dir()}
    assert [line.split(" ", 2)[2] for line in lines] == sorted(there.keys() - {"MANIFEST"})
    for line in lines:
        mode, digest, name = line.split(" ", 2)
        assert int(mode, 8) == there[name].lstat().st_mode & 0o7777, name
        assert sha256(there[name].read_bytes()).hexdigest() == digest, name


def test_no_file_names_a_folder_of_the_builder(root: Root) -> None:
    """If one did, another checkout would give other bits."""
    folders = [str(folder).encode() for folder in (ROOT, cache.root())]
    files = {path: path.read_bytes() for path in root.tree.rglob("*") if path.is_file()}
    assert [path for path, content in files.items() if any(folder in content for folder in folders)] == []


def test_nodes_bear_the_size(node: Root, node_tree: Path) -> None:
    whole = sum(path.stat().st_size for path in node.tree.rglob("*") if path.is_file())
    packed = layer.of_tree(node_tree, node.version).file.stat().st_size
    assert whole <= MOST_BYTES
    assert packed <= MOST_PACKED_BYTES


def test_nodes_have_the_library_built_and_the_units(node: Root) -> None:
    objects = node.tree / "lib/python3/dist-packages/partage_isolation/library/objects"
    assert [path.name for path in objects.iterdir()] == [HERE]
    assert {"libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1"} <= {path.name for path in (objects / HERE).iterdir()}
    assert (node.tree / "systemd/partage-crishim.service").is_file()


def test_nodes_have_partage_oci_built_and_need_no_compiler_for_it(node: Root) -> None:
    program = node.python("from partage_cli.docker.program import built; print(built())").strip()
    assert program == f"/opt/partage/{node.version}/lib/python3/dist-packages/partage_oci/programs/{HERE}/partage-oci"
    done = node.started(program, "create", "c1")
    assert (done.returncode, done.stderr) == (
        1,
        "partage: neither runc nor crun was found; name one as `runtime` in partage-oci.conf\n",
    )


def test_each_part_is_named_with_its_licence(root: Root) -> None:
    parts = json.loads((root.tree / "sbom.json").read_text())["components"]
    debian = {part["name"] for part in parts if part["purl"].startswith("pkg:deb/")}
    assert {"libc6", "python3.11-minimal"} <= debian
    assert {path.name for path in (root.tree / "share/licenses").iterdir()} == debian
    wheels = {part["name"].lower() for part in parts if part["purl"].startswith("pkg:pypi/")}
    assert {"aiohttp", "cryptography", "msgspec"} <= wheels
    assert ("numpy" in wheels) == ("partage-scheduler" in root.programs)
