"""Under any fault of crishim ordinary containers start, under the guard, and crishim reports the fault.

Each fault of the start is in one table. Containers with an allocation are refused with a message that names the cause,
unless the fault does not concern them; when the cause is gone, allocations are honoured.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from rig.patience import patience_s
from unit.crishim.faults.node import BOARD, FILE, GRANTED, KEYS, OWN, RUNTIME, SOCKET, Node, a_node
from unit.crishim.rules.requests import Create

pytestmark = pytest.mark.slow  # each test starts processes

SETTINGS = (
    "partage: crishim on this node cannot read its settings, so it starts no container with an allocation; "
    "`partage doctor` on the node shows the mistake to its administrator, and kubelet tries again"
)
"""Guaranteed text: users search for it."""
GOOD_PLUGIN = """
from partage_plugins.hooks import hookimpl

class Plugin:
    @hookimpl
    def partage_stopping(self):
        pass
"""
Step = Callable[[Node], object]


@dataclass(frozen=True, kw_only=True)
class Broken:
    """One fault."""

    cause: str
    breaks: Step
    says: str
    """In the refusal of a container with an allocation; empty where the allocation is honoured."""
    mends: Step | None = None
    """The step that repairs the fault while crishim runs."""
    starts_again: bool = False
    """Whether crishim exits on this, so that its supervisor restarts it with the repaired state."""
    create: Create = GRANTED


def in_file(text: str) -> Step:
    return lambda node: node.write(FILE, text)


def flag(*flags: str) -> Step:
    def given(node: Node) -> None:
        node.flags = flags

    return given


def variable(name: str, value: str) -> Step:
    def given(node: Node) -> None:
        node.env[name] = value

    return given


def taken_port(node: Node) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    node.flags = ("--metrics-address", f"127.0.0.1:{server.getsockname()[1]}")
    node.taken = server


def free_port(node: Node) -> None:
    assert node.taken is not None
    node.taken.close()


def mistakes_everywhere(node: Node) -> None:
    node.write(FILE, "[crishim]\nguard = 'maybe'\n")
    node.flags = ("--log-level", "loud")
    node.env["PARTAGE_CRISHIM_DRAIN_S"] = "long"


def bad_key(node: Node) -> None:
    (file,) = (node.root / KEYS).iterdir()
    node.text = file.read_text()
    file.write_text("-----BEGIN PUBLIC KEY-----\nhalf")


def good_key(node: Node) -> None:
    (file,) = (node.root / KEYS).iterdir()
    file.write_text(node.text)


def plugin(code: str) -> Step:
    return lambda node: node.plugin(code)


def mended_plugin(node: Node) -> None:
    node.plugin(GOOD_PLUGIN)
    node.reload()


def file_for_folder(name: str) -> Step:
    return lambda node: node.write(name, "")


def remove(name: str) -> Step:
    return lambda node: (node.root / name).unlink()


def settings(breaks: Step, mends: Step | None = None) -> Broken:
    return Broken(cause="settings", breaks=breaks, says=SETTINGS, mends=mends, starts_again=True)


GOOD = "[crishim]\n"
FAULTS = {
    "a file that is no TOML": settings(in_file("[crishim\n"), in_file(GOOD)),
    "a file that is a folder": settings(lambda node: (node.root / FILE).mkdir(parents=True)),
    "a mistake in each source": settings(mistakes_everywhere),
    "an unknown flag": settings(flag("--gaurd", "on")),
    "settings that do not go together": settings(in_file("[crishim]\ndrain_s = 30\n"), in_file(GOOD)),
    "a metrics port that is taken": Broken(cause="metrics", breaks=taken_port, says="", mends=free_port),
    "an address that cannot be looked up": Broken(
        cause="metrics", breaks=flag("--metrics-address", "a..b:9401"), says=""
    ),
    "no key that can be read": Broken(
        cause="keys", breaks=bad_key, mends=good_key, says="which this node does not trust"
    ),
    "a plugin that cannot be imported": Broken(
        cause="plugins",
        breaks=plugin("import nowhere_to_be_found"),
        mends=mended_plugin,
        says="fpga",
        create=BOARD,
    ),
    "a plugin with a bad setting": Broken(
        cause="plugins", breaks=variable("PARTAGE_GPU_ATTACH", "wishfully"), says="gpu"
    ),
    "a plugin that ends its process": Broken(
        cause="plugins",
        breaks=plugin("import os\nos._exit(3)"),
        mends=plugin(GOOD_PLUGIN),
        says="plugin",
    ),
    "no folder for what it must remember": Broken(
        cause="state", breaks=file_for_folder(f"{OWN}/reserved"), mends=remove(f"{OWN}/reserved"), says="cannot write"
    ),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_it_serves_and_says_what_is_wrong(name: str) -> None:
    fault = FAULTS[name]
    async with a_node() as node:
        fault.breaks(node)
        node.start()
        await node.starts_what_asks_for_nothing()
        await node.until_told(fault.cause)
        if fault.says:
            await node.refuses(fault.says, fault.create)
        else:
            await node.honours()
        if fault.mends is None:
            return
        fault.mends(node)
        if fault.starts_again:
            assert await node.until_ended() == 0
            node.start()
        await node.until_told()
        await node.honours()
        await node.starts_what_asks_for_nothing()


async def test_without_settings_it_goes_by_those_of_its_last_good_start() -> None:
    async with a_node() as node:
        elsewhere = '[crishim]\nruntime = "/run/elsewhere.sock"\ntrusted_namespaces = ["monitoring"]\n'
        (node.root / RUNTIME).rename(node.root / "run/elsewhere.sock")
        node.write(FILE, elsewhere)
        node.start()
        await node.until_told()
        node.kill()
        node.write(FILE, "[crishim")
        node.start()
        await node.starts_what_asks_for_nothing()
        trusted = await node.create(Create(namespace="monitoring", env=[("NVIDIA_VISIBLE_DEVICES", "all")]))
        assert not isinstance(trusted, str)
        assert trusted.variable("NVIDIA_VISIBLE_DEVICES") == b"all"
        await node.refuses(SETTINGS)


@pytest.mark.parametrize("kept", ["[crishim]\nguard = 3\n", None])
async def test_where_those_cannot_be_read_either_it_takes_what_is_good_of_the_new_ones(kept: str | None) -> None:
    async with a_node() as node:
        (node.root / RUNTIME).rename(node.root / "run/elsewhere.sock")
        node.write(FILE, '[crishim]\nruntime = "/run/elsewhere.sock"\ngaurd = "on"\n')
        if kept is None:
            (node.root / OWN / "settings.toml").mkdir(parents=True)
        else:
            node.write(f"{OWN}/settings.toml", kept)
        node.start()
        await node.starts_what_asks_for_nothing()
        await node.until_told("settings")


async def test_a_runtime_that_comes_later_is_found() -> None:
    async with a_node() as node:
        await node.runtime_socket.stop()
        node.start()
        await node.until_told("runtime")
        await node.runtime_socket.start()
        await node.until_told()
        await node.starts_what_asks_for_nothing()
        await node.honours()


async def test_a_socket_that_cannot_be_made_is_made_as_soon_as_possible() -> None:
    async with a_node() as node:
        node.write(SOCKET, "somebody's notes")
        node.start()
        await node.until(lambda: "something that is no socket is there" in node.log.read_text(), "it says so")
        (node.root / SOCKET).unlink()
        await node.starts_what_asks_for_nothing()
        await node.honours()


async def test_a_check_of_wrong_settings_tells_them_and_starts_nothing() -> None:
    async with a_node() as node:
        node.write(FILE, "[crishim]\ngaurd = 'on'\n")
        node.flags = ("--check",)
        node.start()
        assert await node.until_ended() == 78
        assert "unknown key 'gaurd'; did you mean guard?" in node.log.read_text()
        assert not (node.root / OWN).exists()


def test_a_flag_that_does_not_exist_is_a_usage_error_at_a_terminal(tmp_path: Path) -> None:
    terminal, behind = os.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "partage_crishim", "--gaurd", "on"],
            env={**os.environ, "PARTAGE_ROOT": str(tmp_path)},
            stderr=behind,
            check=False,
            timeout=patience_s(),
        )
        os.write(behind, b"\nend\n")
        said = b""
        while b"\nend" not in said:
            said += os.read(terminal, 4096)
    finally:
        os.close(terminal)
        os.close(behind)
    assert (done.returncode, b"No such option" in said) == (2, True)
    assert not (tmp_path / SOCKET).exists()
