"""The same commit gives the same bits, and the other architecture's tree is complete although it is not run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_bundle import built, cache, elf, layer, recipe
from real.bundle.conftest import HERE

OTHER = next(name for name in recipe.MACHINES if name != HERE)


@pytest.fixture
def second_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A second user's cache: with the downloads and compiled objects, without assembled results."""
    first, second = cache.root(), tmp_path / "cache"
    second.mkdir()
    for name in ("debs", "uv", "zig", "objects"):
        (second / name).symlink_to(first / name)
    monkeypatch.setenv("PARTAGE_BUNDLE_CACHE", str(second))
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    before = os.umask(0o077)
    yield second
    os.umask(before)


@pytest.mark.extended("builds a second time what is built once for all tests")
def test_a_second_build_is_the_first_one_to_the_bit(
    node_tree: Path, second_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = (node_tree / "VERSION").read_text().strip()
    again = built("node")
    assert second_cache in again.parents
    assert (again / "MANIFEST").read_text() == (node_tree / "MANIFEST").read_text()
    packed = layer.of_tree(again, version)
    assert second_cache in packed.file.parents
    monkeypatch.delenv("PARTAGE_BUNDLE_CACHE")
    assert packed.file.read_bytes() == layer.of_tree(node_tree, version).file.read_bytes()


@pytest.mark.extended("builds for another processor")
def test_the_other_machine_has_the_same_files_of_its_own_kind(node_tree: Path) -> None:
    other = built("node", OTHER)
    mine, theirs = recipe.MACHINES[HERE], recipe.MACHINES[OTHER]
    kinds = {path: elf.machine_of(path.read_bytes()) for path in other.rglob("*") if path.is_file()}
    assert {kind for kind in kinds.values() if kind is not None} == {theirs.elf}
    assert kinds[other / recipe.PACKAGES / "partage_oci/programs" / OTHER / "partage-oci"] == theirs.elf
    assert kinds[other / "bin/python3"] == kinds[other / "lib/libc.so.6"] == theirs.elf
    version = (other / "VERSION").read_text().strip()
    starts_by = f"{recipe.PREFIX}/{version}/lib/{theirs.loader}\0"
    assert starts_by.encode() in (other / "bin/python3").read_bytes()
    there = {str(path.relative_to(other)) for path in kinds}
    here = {str(path.relative_to(node_tree)) for path in node_tree.rglob("*") if path.is_file()}
    assert {_of(name, theirs) for name in there} == {_of(name, mine) for name in here}


def _of(name: str, machine: recipe.Machine) -> str:
    return name.replace(machine.loader, "LOADER").replace(machine.name, "MACHINE")
