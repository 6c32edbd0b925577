"""A library finds its node by its own location, and handles the end of either."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.daemon.users import small_node, until, used
from support.simgpu import card, simulated_node
from support.steered import Steered

pytestmark = pytest.mark.slow
_SIMGPU = Path(__file__).parents[3] / "simgpu/native"
_FOLDER = TemporaryDirectory(prefix="partage-probe-")
atexit.register(_FOLDER.cleanup)
_OK, _BROKEN = 0, 9
_PROGRAM = """
import ctypes, json, os, sys
probe = ctypes.CDLL(sys.argv[1])
probe.probe_root.restype = ctypes.c_char_p
probe.probe_take.argtypes = [ctypes.c_uint64]
for line in sys.stdin:
    print(json.dumps(["ok", eval(line)]), flush=True)
"""


@cache
def _probe() -> Path:
    built = Path(_FOLDER.name) / "libprobe.so"
    sources = [Path(__file__).with_name("probe.c"), _SIMGPU / "common/connection.c"]
    flags = ["-std=gnu11", "-O1", "-Wall", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread"]
    subprocess.run(["cc", *flags, "-I", _SIMGPU / "common", *sources, "-o", built], check=True)
    return built


class Program(Steered):
    """A program that has loaded the library, and returns its functions' results."""

    def __init__(self, library: Path) -> None:
        super().__init__([sys.executable, "-c", _PROGRAM, library], env=os.environ, refusals="")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.close()

    def probe(self, function: str, *arguments: object) -> Any:
        return self.ask(f"probe.probe_{function}({', '.join(map(str, arguments))})")


def _installed(root: Path, folder: str = "usr/lib/x86_64-linux-gnu") -> Path:
    place = root / folder
    place.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(_probe(), place / "libprobe.so.1"))


@pytest.mark.parametrize("folder", ["usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib"])
def test_a_library_finds_the_node_whose_root_it_lies_in(node: SimulatedNode, folder: str) -> None:
    with Program(_installed(node.root, folder)) as program:
        assert program.probe("connect") == _OK
        assert program.ask("probe.probe_root().decode()") == str(node.root)
        assert program.probe("take", 5) == _OK
        assert used(node) == 5


def test_a_root_may_be_deep(tmp_path: Path) -> None:
    """Longer than a socket address can hold."""
    with small_node(tmp_path / ("x" * 120)) as node, Program(_installed(node.root)) as program:
        assert program.probe("connect") == _OK
        assert program.probe("take", 5) == _OK


def test_links_on_the_way_to_the_library_do_not_matter(node: SimulatedNode, tmp_path: Path) -> None:
    library = _installed(node.root)
    (tmp_path / "root-link").symlink_to(node.root)
    (tmp_path / "alone.so").symlink_to(library)
    elsewhere = Path(shutil.copy(library, tmp_path / "elsewhere.so"))
    into = library.with_name("link.so")
    into.symlink_to(elsewhere)
    for path in (tmp_path / "root-link" / library.relative_to(node.root), tmp_path / "alone.so", into):
        with Program(path) as program:
            assert program.probe("connect") == _OK
            assert program.ask("probe.probe_root().decode()") == str(node.root)


def test_a_library_that_lies_in_no_root_has_no_node(node: SimulatedNode) -> None:
    with Program(Path(shutil.copy(_probe(), node.root / "libprobe.so"))) as program:
        assert program.probe("connect") == _BROKEN


def test_without_simgpud_there_is_no_node_until_there_is_one(node: SimulatedNode) -> None:
    node.stop()
    with Program(_installed(node.root)) as program:
        assert program.probe("connect") == _BROKEN
        node.start()
        assert program.probe("connect") == _OK


def test_a_forked_child_has_no_node_and_its_parent_keeps_it(node: SimulatedNode) -> None:
    with Program(_installed(node.root)) as program:
        assert program.probe("connect") == _OK
        assert program.probe("in_child") == 10 * _BROKEN + _BROKEN
        assert program.probe("take", 5) == _OK
        assert used(node) == 5


def test_a_child_of_a_process_that_never_connected_connects_itself(node: SimulatedNode) -> None:
    with Program(_installed(node.root)) as program:
        assert program.probe("in_child") == 10 * _OK + _OK
    until(lambda: used(node) == 0)


def test_the_death_of_simgpud_is_for_ever_unless_the_library_forgets_it(node: SimulatedNode) -> None:
    with Program(_installed(node.root)) as program:
        assert program.probe("connect") == _OK
        assert program.probe("alive") == 1
        node.kill()
        assert program.probe("alive") == 0
        assert program.probe("take", 5) == _BROKEN
        node.start()
        assert program.probe("connect") == _OK, "it is connected, to one that is dead"
        assert program.probe("take", 5) == _BROKEN
        program.ask("probe.probe_disconnect() and None")
        assert program.probe("connect") == _OK
        assert program.probe("take", 5) == _OK
        assert program.probe("alive") == 1


def test_a_program_that_execs_has_nothing_of_the_connection(node: SimulatedNode) -> None:
    count = "len([1 for fd in os.listdir('/proc/self/fd') if int(fd) > 2])"
    listing = f"""import os; print('["ok", %d]' % {count}, flush=True); input()"""
    with Program(_installed(node.root)) as program:
        assert program.probe("connect") == _OK
        assert program.probe("take", 5) == _OK
        assert program.ask(f"os.execv({sys.executable!r}, [{sys.executable!r}, '-c', {listing!r}])") == 1
        until(lambda: used(node) == 0)


def test_descriptors_go_to_and_come_from_simgpud(node: SimulatedNode) -> None:
    with Program(_installed(node.root)) as program:
        program.probe("connect")
        program.ask("exec('import ctypes; piece = ctypes.c_uint64(); sent = os.memfd_create(\"kept\")', globals())")
        program.ask("globals().update(got=probe.probe_open_files(sent, ctypes.byref(piece)))")
        assert program.ask("os.readlink(f'/proc/self/fd/{got}')") == "/memfd:kept (deleted)"
        assert program.ask("os.get_inheritable(got)") is False


def test_a_process_is_seen_among_those_of_its_card(node: SimulatedNode) -> None:
    with Program(_installed(node.root)) as program:
        program.probe("connect")
        assert program.probe("processes") == 1


def test_cards_whose_device_node_is_missing_are_not_to_be_seen(tmp_path: Path) -> None:
    cards = (card("h100", mig=("1g.10gb",)), "h100", "h100")
    with simulated_node(tmp_path, cards=cards) as node, Program(_installed(node.root)) as program:
        program.probe("connect")
        assert program.probe("visible") == 0b1111
        os.unlink(node.root / "dev/nvidia1")  # noqa: PTH108 - a device node
        assert program.probe("visible") == 0b1011
        os.unlink(node.root / "dev/nvidia0")  # noqa: PTH108
        assert program.probe("visible") == 0b1000, "an instance goes with its card"
