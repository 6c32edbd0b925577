"""Lock files are parsed strictly, and hold all that the recipe requires and nothing that is forbidden on nodes."""

from __future__ import annotations

import re

import pytest

from partage_bundle import locks, recipe
from partage_bundle.errors import BundleError
from partage_bundle.process import ROOT

DIGEST = "ab" * 32
PINNED = re.compile(r"^([a-z0-9_.-]+)==([^ ;\\]+)", re.MULTILINE)


def pins(text: str) -> set[tuple[str, str]]:
    return {(name, version) for name, version in PINNED.findall(text)}


@pytest.mark.parametrize(
    "line",
    [
        "libc6 2.36-9",
        f"libc6 2.36-9 {DIGEST[:-1]} pool/main/g/glibc/libc6.deb",
        f"libc6 2.36-9 {DIGEST} http://registry.example/pool/libc6.deb",
        f"libc6 2.36-9 {DIGEST} pool/../../etc/shadow",
        f"../libc6 2.36-9 {DIGEST} pool/main/libc6.deb",
    ],
)
def test_a_line_that_is_no_package_is_named_by_its_place(line: str) -> None:
    with pytest.raises(BundleError, match=r"debian\.txt:2: expected NAME VERSION SHA-256 PATH"):
        locks.read(f"# what it is\n{line}\n", "debian.txt")


def test_what_is_written_is_read_again() -> None:
    packages = [
        locks.Package("zlib1g", "1:1.2.13.dfsg-1", DIGEST, "pool/main/z/zlib/zlib1g_1.2.13.dfsg-1_amd64.deb"),
        locks.Package("libstdc++6", "12.2.0-14", DIGEST, "pool/main/g/gcc-12/libstdc++6_12.2.0-14_amd64.deb"),
    ]
    assert locks.read(locks.written(packages), "") == {package.name: package for package in packages}


def test_a_lock_without_a_package_of_the_recipe_says_which_one_and_who_writes_it() -> None:
    with pytest.raises(BundleError, match=r"debian\.txt lacks libffi8; tools/lock writes it"):
        locks.chosen({}, ["libffi8"], "debian.txt")


@pytest.mark.parametrize("machine", recipe.MACHINES)
def test_the_lock_of_each_machine_has_what_its_trees_take_and_no_more(machine: str) -> None:
    found = locks.read(locks.debian(machine).read_text(), machine)
    assert tuple(sorted(found)) == recipe.PACKAGES_OF_DEBIAN


def test_both_machines_have_the_same_versions() -> None:
    """Rebuilds for one machine alone, such as `+b1`, have the same sources."""
    versions = [
        {name: re.sub(r"\+b\d+$", "", package.version) for name, package in found.items()}
        for found in (locks.read(locks.debian(name).read_text(), name) for name in recipe.MACHINES)
    ]
    assert versions[0] == versions[1]


@pytest.mark.parametrize("tree", recipe.TREES)
def test_wheels_have_the_versions_that_were_tested(tree: str) -> None:
    found = pins(locks.wheels(tree).read_text())
    assert found
    assert found <= pins((ROOT / "requirements/dev.lock").read_text())


def test_nodes_get_no_numpy() -> None:
    node, scheduler = ({name for name, _ in pins(locks.wheels(tree).read_text())} for tree in ("node", "scheduler"))
    assert "numpy" in scheduler - node


@pytest.mark.parametrize("tree", recipe.TREES.values(), ids=recipe.TREES)
def test_a_lock_names_each_requirement_of_the_project(tree: recipe.Tree) -> None:
    wanted = locks.requirements((ROOT / "pyproject.toml").read_text(), tree.extra)
    names = {re.split(r"[^A-Za-z0-9_.-]", each)[0].lower() for each in wanted}
    assert names <= {name for name, _ in pins(locks.wheels(tree.name).read_text())}
