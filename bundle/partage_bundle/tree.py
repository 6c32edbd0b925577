"""A tree: all that one kind of machine needs, to be installed at /opt/partage/<version> and nowhere else.

It is assembled from parts in the cache, so a new commit takes seconds and little disk space. It is read-only: on a node
nothing is written below it, every module is compiled already, and MANIFEST tells whether a copy is complete.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from configparser import ConfigParser
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

from partage_bundle import bill_of_materials, cache, debian, interpreter, locks, native, objects, recipe, wheels
from partage_bundle.debian import copy
from partage_bundle.errors import BundleError
from partage_bundle.process import ROOT, run, say
from partage_bundle.recipe import Machine, Tree

DIRTY: Final = "-dirty"
"""The end of the version of a checkout with uncommitted changes."""
_HEX: Final = 12
_COMPILED: Final = {
    "partage_isolation/library/objects": native.objects,
    "partage_oci/programs": native.program,
}
"""Folders of our packages that get compiled files, and what builds these."""
_VERSION: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
"""It is used as a folder's name and as an image's tag."""
_SCRIPT: Final = """\
#!{prefix}/bin/python3 -P
import sys
from {module} import {function}
sys.exit({function}())
"""
# As in a virtual environment that is its own base: packages in a user's home, root's too, are ignored.
_SETTINGS: Final = "home = {prefix}/bin\ninclude-system-site-packages = false\n"


def version_here() -> str:
    """Of this checkout: the project's version and the commit; `-dirty` with uncommitted changes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    commit = run(("git", "rev-parse", "HEAD"))[:_HEX]
    is_dirty = bool(run(("git", "status", "--porcelain")))
    return f"{project}-g{commit}" + (DIRTY if is_dirty else "")


def built(tree: str, machine: str | None = None, *, version: str | None = None) -> Path:
    """The folder of the tree of this checkout, for this machine unless another is named. To copy, never to write to.

    A version other than the checkout's is for tests of upgrades.
    """
    return _built(recipe.TREES[tree], recipe.MACHINES[machine or os.uname().machine], version or version_here())


def every_tree(machines: Iterable[Machine], version: str) -> Iterator[tuple[Tree, list[tuple[Machine, Path]]]]:
    """Each tree of this checkout, with its folder for each of these machines."""
    chosen = list(machines)
    for tree in recipe.TREES.values():
        yield tree, [(machine, _built(tree, machine, version)) for machine in chosen]


def _built(tree: Tree, machine: Machine, named: str) -> Path:
    if not _VERSION.fullmatch(named):
        raise BundleError(f"{named!r} is no version: it must be a folder's name and an image's tag")
    with tempfile.TemporaryDirectory() as folder:
        wheel = wheels.own(Path(folder))
        ground = _ground(tree, machine)
        compiled = {folder: make(machine) for folder, make in _COMPILED.items() if tree.is_for_nodes}
        key = cache.digest(
            wheel.read_bytes(),
            *map(str, (ground, *compiled.values())),
            cache.digest_of_files([ROOT / "manifests/systemd"]),
            cache.digest_of_builder(),
        )

        def fill(place: Path) -> None:
            say(f"putting {tree.name} {named} for {machine.name} together")
            # Files of the ground are hard-linked: nothing writes to them, and a tree takes space only for its own
            # files.
            shutil.copytree(ground, place, copy_function=os.link, dirs_exist_ok=True)
            wheels.install_own(wheel, place / recipe.PACKAGES)
            for folder, files in compiled.items():
                _add(files, place / recipe.PACKAGES / folder / machine.name)
            if tree.is_for_nodes:
                _add(ROOT / "manifests/systemd", place / "systemd")
            _finish(place, tree, machine, named)

        return cache.made("trees", f"{tree.name}-{machine.name}-{named}-{key}", fill)


def _ground(tree: Tree, machine: Machine) -> Path:
    """All that the locks determine, compiled: everything but our own code."""
    runtime = debian.runtime(machine)

    def fill(place: Path) -> None:
        shutil.copytree(runtime, place, dirs_exist_ok=True)
        into = place / recipe.PACKAGES
        into.mkdir(parents=True)
        wheels.install_others(tree, machine, into)
        interpreter.here().compile(place / "lib")
        objects.need_fit(place, machine)
        objects.shed(place / recipe.PACKAGES)

    key = cache.digest(str(runtime), locks.wheels(tree.name).read_bytes(), cache.digest_of_builder())
    return cache.made("grounds", f"{tree.name}-{machine.name}-{key}", fill)


def _add(files: Path, into: Path) -> None:
    for path in sorted(files.iterdir()):
        copy(path, into / path.name)


def _finish(place: Path, tree: Tree, machine: Machine, named: str) -> None:
    prefix = f"{recipe.PREFIX}/{named}"
    _add_programs(place, tree, prefix)
    _write(place / "pyvenv.cfg", _SETTINGS.format(prefix=prefix))
    _write(place / bill_of_materials.VERSION, f"{named}\n")
    objects.bind(place, machine, prefix)
    _write(place / bill_of_materials.PARTS, _parts(place, tree, machine, named))
    for path in (place, *place.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    entries = [
        bill_of_materials.ManifestEntry(
            str(path.relative_to(place)), path.stat().st_mode & 0o777, sha256(path.read_bytes()).hexdigest()
        )
        for path in place.rglob("*")
        if path.is_file()
    ]
    _write(place / bill_of_materials.MANIFEST, bill_of_materials.manifest(entries))


def _add_programs(place: Path, tree: Tree, prefix: str) -> None:
    """Each runs the interpreter by its absolute path, so that PATH does not matter."""
    (declared,) = (place / recipe.PACKAGES).glob("partage-*.dist-info/entry_points.txt")
    table = ConfigParser(delimiters=("=",))
    table.read_string(declared.read_text(encoding="utf-8"))
    for name, target in table["console_scripts"].items():
        if name not in tree.leaves_out:
            module, _, function = target.partition(":")
            _write(place / "bin" / name, _SCRIPT.format(prefix=prefix, module=module, function=function), mode=0o755)


def _parts(place: Path, tree: Tree, machine: Machine, named: str) -> str:
    lock = locks.debian(machine.name)
    packages = locks.chosen(
        locks.read(lock.read_text(encoding="utf-8"), str(lock)), recipe.PACKAGES_OF_DEBIAN, str(lock)
    )
    found = [
        bill_of_materials.Wheel(
            each.metadata["Name"], each.version, str(each.metadata.json.get("license_expression", ""))
        )
        for each in distributions(path=[str(place / recipe.PACKAGES)])
        if each.metadata["Name"] != "partage"
    ]
    return bill_of_materials.parts(f"partage-{tree.name}", named, machine.debian, packages, found)


def _write(path: Path, text: str, *, mode: int = 0o644) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
