"""Profiles of instances, the library's path below a root, and a card's location as the kernel reports it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.driver_root import LIBRARY, OPERATORS, installed_root, library_below
from partage_gpu.nvml.snapshot import numa_node_of, profile_of


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "1g.10gb"),
        ("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", "1c.3g.20gb"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", "1g.10gb+me"),
    ],
)
def test_the_profile_stands_behind_the_cards_name(name: str, profile: str) -> None:
    assert profile_of(name, (7, 7, 7)) == profile


@pytest.mark.parametrize(
    ("slices", "profile"),
    [((1, 1, 9856), "1g.10gb"), ((3, 3, 40320), "3g.40gb"), ((1, 3, 20096), "1c.3g.20gb"), (None, "unknown")],
)
def test_an_older_drivers_profile_is_made_of_its_slices(slices: tuple[int, int, int] | None, profile: str) -> None:
    assert profile_of("NVIDIA A100", slices) == profile


@given(st.text(), st.none() | st.tuples(*[st.integers(0, 1 << 32)] * 3))
def test_every_name_gives_a_profile(name: str, slices: tuple[int, int, int] | None) -> None:
    assert profile_of(name, slices)


@pytest.mark.parametrize(
    "folder", ["usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "lib64", "lib"]
)
def test_the_library_is_found_where_distributions_put_it(tmp_path: Path, folder: str) -> None:
    library = tmp_path / folder / LIBRARY
    library.parent.mkdir(parents=True)
    library.touch()
    assert library_below(str(tmp_path)) == str(library)


def test_a_library_that_is_not_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "usr/lib64" / LIBRARY).mkdir(parents=True)  # a folder is not a library
    assert library_below(str(tmp_path)) is None


def test_a_driver_in_the_operators_container_is_found_for_as_long_as_it_is_mounted(tmp_path: Path) -> None:
    theirs = tmp_path / OPERATORS
    assert installed_root(str(tmp_path)) == str(tmp_path)
    (theirs / "usr/lib64").mkdir(parents=True)
    assert installed_root(str(tmp_path)) == str(tmp_path), "it is not whole yet"
    (theirs / "usr/lib64" / LIBRARY).touch()
    assert installed_root(str(tmp_path)) == installed_root(f"{tmp_path}/") == str(theirs)
    assert installed_root(str(theirs)) == str(theirs)
    (theirs / "usr/lib64" / LIBRARY).unlink()
    assert installed_root(str(tmp_path)) == str(tmp_path)


def test_the_machines_own_driver_goes_before_the_operators(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / OPERATORS):
        (root / "lib64").mkdir(parents=True)
        (root / "lib64" / LIBRARY).touch()
    assert installed_root(str(tmp_path)) == str(tmp_path)


@pytest.mark.parametrize("root", ["/", "//", "/./"])
def test_for_the_root_the_loader_looks_itself(root: str) -> None:
    assert library_below(root) == LIBRARY


@pytest.mark.parametrize(("text", "node"), [("1\n", 1), ("0\n", 0), ("-1\n", None), ("", None), ("x", None)])
def test_the_kernel_says_the_numa_node(tmp_path: Path, text: str, node: int | None) -> None:
    folder = tmp_path / "sys/bus/pci/devices/0000:18:00.0"
    folder.mkdir(parents=True)
    (folder / "numa_node").write_text(text)
    assert numa_node_of(str(tmp_path), "0000:18:00.0") == node
    assert numa_node_of(str(tmp_path), "0000:19:00.0") is None


class TestLinksBelowAnotherRoot:
    """Debian's links, to /etc/alternatives and back: all are resolved in the driver's root, none on this machine."""

    def _library(self, root: Path) -> Path:
        real = root / "usr/lib/x86_64-linux-gnu/nvidia/current" / f"{LIBRARY}.580"
        real.parent.mkdir(parents=True)
        real.touch()
        return real

    def _link(self, root: Path, path: str, target: str) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).symlink_to(target)

    def test_are_followed_below_it(self, tmp_path: Path) -> None:
        real = self._library(tmp_path)
        self._link(tmp_path, f"usr/lib/x86_64-linux-gnu/{LIBRARY}", f"/etc/alternatives/{LIBRARY}")
        self._link(
            tmp_path, f"etc/alternatives/{LIBRARY}", f"../../usr/lib/x86_64-linux-gnu/nvidia/current/{real.name}"
        )
        assert library_below(str(tmp_path)) == str(real)

    def test_of_folders_are_followed_too(self, tmp_path: Path) -> None:
        real = self._library(tmp_path)
        self._link(tmp_path, f"usr/lib/x86_64-linux-gnu/nvidia/current/{LIBRARY}", real.name)
        self._link(tmp_path, "lib64", "/usr/lib/x86_64-linux-gnu/nvidia/current")
        assert library_below(str(tmp_path)) == str(real)

    def test_never_lead_out_of_it(self, tmp_path: Path) -> None:
        outside = tmp_path / LIBRARY
        outside.touch()
        self._link(tmp_path / "root", f"usr/lib64/{LIBRARY}", f"../../../../../{LIBRARY}")
        self._link(tmp_path / "root", f"usr/lib/{LIBRARY}", str(outside))
        assert library_below(str(tmp_path / "root")) is None

    def test_in_a_circle_are_no_library(self, tmp_path: Path) -> None:
        self._link(tmp_path, f"usr/lib64/{LIBRARY}", f"/usr/lib/{LIBRARY}")
        self._link(tmp_path, f"usr/lib/{LIBRARY}", f"../lib64/{LIBRARY}")
        assert library_below(str(tmp_path)) is None
