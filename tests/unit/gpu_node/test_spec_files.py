"""Reading and writing spec files under every kind of failure."""

from __future__ import annotations

import json
import os
import resource
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from partage_base.files import UNFINISHED
from partage_gpu.node.nvidia_specs import LARGEST_BYTES
from partage_gpu.node.spec_file import OwnKind
from partage_plugins import Refused
from partage_plugins.testing.examples import container
from partage_plugins.testing.fixtures import PluginHosts
from unit.gpu_node.nodes import FIRST, SAMPLES, MadeNode, attaches, granted, part

GOOD = (SAMPLES / "nvidia.json").read_text()
PLUGIN = {"gpu": "partage_gpu.node:GpuNode"}
KIND = '"kind": "nvidia.com/gpu"'


@pytest.fixture
def written(node: MadeNode) -> MadeNode:
    """A node on which our spec already exists."""
    node.write("etc/cdi/nvidia.json", GOOD)
    node.adjusted(FIRST)
    return node


@contextmanager
def files_of_at_most(size: int) -> Generator[None]:
    """Writes beyond this size fail, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{{{KIND},", "JSON is malformed|truncated"),
        (f'{{{KIND}, "devices": {"[" * 5000}{"]" * 5000}}}', "nested too deep"),
        (f"{{{KIND}}}\udcff".encode("utf-8", "surrogateescape"), "can't decode byte 0xff"),
        (f'{{{KIND}, "devices": []}}{" " * LARGEST_BYTES}', f"larger than {LARGEST_BYTES} bytes"),
        (f"{{{KIND}}}", "missing required field"),
    ],
)
def test_a_wrong_spec_of_nvidias_refuses_and_leaves_ours_as_it_was(
    written: MadeNode, text: str | bytes, why: str
) -> None:
    before = written.own_spec.read_bytes()
    written.write("etc/cdi/nvidia.json", text)
    with pytest.raises(Refused, match=f"etc/cdi/nvidia.json on this node can't be used: .*({why}).*make it again"):
        written.adjusted(FIRST)
    assert written.own_spec.read_bytes() == before


def test_unclear_yaml_is_refused_with_its_line(node: MadeNode) -> None:
    node.write("etc/cdi/nvidia.yaml", "kind: nvidia.com/gpu\ndevices: &all []\n")
    with pytest.raises(Refused, match="line 2 has an anchor, an alias or a tag, which readers take"):
        node.adjusted(FIRST)


def test_json_under_a_name_of_yaml_is_read(node: MadeNode) -> None:
    node.write("etc/cdi/nvidia.yaml", GOOD)
    assert attaches(node.adjusted(FIRST), FIRST)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("vendor.yaml", "kind: vendor.com/gpu\nmalformed ["),
        ("vendor.json", '{"kind": "management.nvidia.com/gpu", '),
        ("vendor.json", '{"kind": "nvidia.com/gpus", '),
        ("empty.json", ""),
        ("nvidia.json.bak", GOOD),
        (".hidden.txt", GOOD),
        ("partage.dev-gpu.json", '{"kind": "nvidia.com/gpu"}'),
        ("large.json", "x" * (LARGEST_BYTES + 1)),
    ],
)
def test_files_of_others_are_left_alone_whatever_stands_in_them(node: MadeNode, name: str, text: str) -> None:
    node.with_driver().write(f"etc/cdi/{name}", text)
    assert attaches(node.adjusted(FIRST), FIRST)


def test_two_specs_of_nvidias_in_one_folder_are_refused_by_name(node: MadeNode) -> None:
    """A runtime resolves none of the cards that both name."""
    one, other = (node.write(f"var/run/cdi/{name}", GOOD) for name in ("a.json", "b.json"))
    with pytest.raises(Refused, match=f"{one} and {other} both describe nvidia.com/gpu on this node; remove the older"):
        node.adjusted(FIRST)


def test_a_link_to_a_spec_is_followed_and_one_to_nowhere_is_none(node: MadeNode) -> None:
    real = node.write("opt/cdi/spec", GOOD)
    (node.root / "etc/cdi").mkdir(parents=True)
    (node.root / "etc/cdi/gone.json").symlink_to("nowhere")
    (node.root / "etc/cdi/nvidia.json").symlink_to(real)
    assert attaches(node.adjusted(FIRST), FIRST)


def test_a_link_to_itself_is_named(node: MadeNode) -> None:
    (node.root / "etc/cdi").mkdir(parents=True)
    (node.root / "etc/cdi/nvidia.json").symlink_to("nvidia.json")
    with pytest.raises(Refused, match=r"nvidia.json on this node can't be used: Too many levels of symbolic links"):
        node.adjusted(FIRST)


def test_pipes_folders_and_devices_are_no_specs_and_hold_nobody_up(node: MadeNode) -> None:
    folder = node.with_driver().root / "etc/cdi"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "pipe.json")
    (folder / "folder.json").mkdir()
    (folder / "zeros.json").symlink_to("/dev/zero")
    assert attaches(node.adjusted(FIRST), FIRST)


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_spec_that_others_may_write_is_not_believed(node: MadeNode, mode: int) -> None:
    node.write("etc/cdi/nvidia.json", GOOD, mode)
    with pytest.raises(Refused, match="others than root may write it"):
        node.adjusted(FIRST)


def test_a_full_disk_refuses_and_leaves_the_old_spec(written: MadeNode) -> None:
    before = written.own_spec.read_bytes()
    written.write("etc/cdi/nvidia.json", GOOD.replace('"0.5.0"', '"0.6.0"'))
    with files_of_at_most(1000), pytest.raises(Refused) as refused:
        written.adjusted(FIRST)
    assert str(refused.value) == (
        f"partage: the CDI spec {written.own_spec} can't be written on this node: File too large; what stood there "
        "stays; make room or mend it there, or set PARTAGE_GPU_ATTACH to another way"
    )
    assert written.own_spec.read_bytes() == before
    assert os.listdir(written.own_spec.parent) == [written.own_spec.name]  # noqa: PTH208  names


def test_a_spec_that_is_right_needs_no_room(written: MadeNode) -> None:
    with files_of_at_most(0):
        assert attaches(written.adjusted(FIRST), FIRST)


@pytest.mark.parametrize("is_right", [True, False])
def test_a_link_in_place_of_our_spec_is_replaced_and_not_followed(
    written: MadeNode, tmp_path: Path, *, is_right: bool
) -> None:
    """Even a link to a text that is currently right: its owner could change it before the runtime reads it."""
    target = tmp_path / "target"
    before = written.own_spec.read_bytes() if is_right else b"somebody's"
    target.write_bytes(before)
    written.own_spec.unlink()
    written.own_spec.symlink_to(target)
    written.adjusted(FIRST)
    assert not written.own_spec.is_symlink()
    assert target.read_bytes() == before


def test_a_folder_in_place_of_our_spec_is_named(node: MadeNode) -> None:
    node.write("etc/cdi/nvidia.json", GOOD)
    node.own_spec.mkdir(parents=True)
    with pytest.raises(Refused, match="can't be written on this node: Is a directory"):
        node.adjusted(FIRST)


def test_our_spec_is_for_all_to_read_whatever_the_umask(node: MadeNode) -> None:
    node.write("etc/cdi/nvidia.json", GOOD)
    before = os.umask(0o077)
    try:
        node.adjusted(FIRST)
    finally:
        os.umask(before)
    assert node.own_spec.stat().st_mode & 0o777 == 0o644


def test_what_a_killed_writer_left_is_cleared_and_what_another_writes_now_is_not(node: MadeNode) -> None:
    node.write("etc/cdi/nvidia.json", GOOD)
    old, new = (node.write(f"var/run/cdi/{UNFINISHED}{name}", "{") for name in ("old", "new"))
    an_hour_ago = time.time() - 3600
    os.utime(old, (an_hour_ago, an_hour_ago))
    node.adjusted(FIRST)
    assert not old.exists()
    assert new.exists()


def test_readers_see_a_whole_spec_while_two_writers_disagree(node: MadeNode) -> None:
    """An old and a new crishim side by side, one of which reads another NVIDIA spec."""
    node.write("etc/cdi/nvidia.json", GOOD)
    node.adjusted(FIRST)
    others = MadeNode(node.root / "other")
    others.write("etc/cdi/nvidia.json", GOOD.replace('"0.5.0"', '"0.6.0"'))
    (node.root / "other/var").symlink_to(node.root / "var")
    writers = [OwnKind(each.root, "/") for each in (node, others)]
    of, done = part(), threading.Event()

    def write(writer: OwnKind) -> None:
        for _ in range(100):
            writer.ensure(of.cards[:1], of)

    def read() -> set[str]:
        seen: set[str] = set()
        while not done.is_set():
            seen.add(json.loads(node.own_spec.read_text())["cdiVersion"])
        return seen

    with ThreadPoolExecutor() as pool:
        reading = pool.submit(read)
        for writing in [pool.submit(write, writer) for writer in writers]:
            writing.result()
        done.set()
        assert reading.result() <= {"0.5.0", "0.6.0"}


def test_it_works_in_the_process_in_which_crishim_runs_it(plugin_host: PluginHosts, node: MadeNode) -> None:
    node.write("etc/cdi/nvidia.yaml", (SAMPLES / "nvidia.yaml").read_text())
    host = plugin_host(PLUGIN)
    assert host.adjust(container(), granted(FIRST)).adjustment.cdi == (f"partage.dev/gpu={FIRST}",)
    assert node.own_spec.exists()
    node.write("etc/cdi/nvidia.yaml", "kind: nvidia.com/gpu\n")
    with pytest.raises(Refused, match="missing required field"):
        host.adjust(container(), granted(FIRST))
