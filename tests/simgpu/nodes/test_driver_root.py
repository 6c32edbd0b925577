"""A node's folder has the layout of an installed driver."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_simgpu.description import Card, described, sections_of
from partage_simgpu.driver_root import CONF, LIBRARIES, SIMGPUD, lay_out
from partage_simgpu.profiles import load_profile

CARDS = [Card(load_profile("h100"), ("1g.10gb",)), Card(load_profile("l4"))]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    build = tmp_path / "build"
    build.mkdir()
    for name in ("simgpud", "libcuda.so", "libnvidia-ml.so"):
        (build / name).write_text(name)
    lay_out(tmp_path / "root", build, described("n1", CARDS))
    return tmp_path / "root"


@pytest.fixture
def strict_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_libraries_have_the_version_in_their_names_and_the_links_that_programs_ask_for(root: Path) -> None:
    folder = root / LIBRARIES
    assert {path.name for path in folder.iterdir()} == {
        "libcuda.so.580.95.05",
        "libcuda.so.1",
        "libcuda.so",
        "libnvidia-ml.so.580.95.05",
        "libnvidia-ml.so.1",
    }
    assert (folder / "libcuda.so").read_text() == "libcuda.so"
    assert (folder / "libnvidia-ml.so.1").read_text() == "libnvidia-ml.so"


def test_links_stay_inside_so_that_a_container_can_have_the_folder(root: Path) -> None:
    links = [path for path in root.rglob("*") if path.is_symlink() and "dev" not in path.parts]
    assert links
    assert all("/" not in str(link.readlink()) for link in links)


def test_every_card_has_a_device_that_opens_and_instances_have_none(root: Path) -> None:
    assert {path.name for path in (root / "dev").iterdir()} == {
        *("nvidia0", "nvidia1"),
        *("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"),
    }
    for path in (root / "dev").iterdir():
        with path.open("r+b", buffering=0) as device:
            assert device.read() == b""


def test_the_kernel_driver_tells_its_version_and_each_card(root: Path) -> None:
    assert "580.95.05" in (root / "proc/driver/nvidia/version").read_text()
    told = [path.read_text() for path in (root / "proc/driver/nvidia/gpus").glob("*/information")]
    cards = [one for one in sections_of((root / CONF).read_text()) if one.kind == "card"]
    assert sorted(str(one.fields["uuid"]) for one in cards) == sorted(
        line.split()[-1] for text in told for line in text.splitlines() if line.startswith("GPU UUID")
    )


@pytest.mark.usefixtures("strict_umask", "root")
def test_any_user_can_read_all_of_it_whatever_the_umask_is(tmp_path: Path) -> None:
    found = [path for path in (tmp_path / "root").rglob("*") if not path.is_symlink()]
    assert all(path.stat().st_mode & 0o004 for path in found)
    assert tmp_path / "root" / SIMGPUD in found
