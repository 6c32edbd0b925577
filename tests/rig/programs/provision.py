"""Provides the programs: looks for each, and builds those that are missing.

Looking is a few stat calls, because every test run does it. The system's requirements are checked first, so that nobody
waits for minutes before a missing package is reported. One component is built at a time: go uses all cores by itself.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig.errors import BuildFailed, RigError
from rig.programs import archive, catalogue, debian, golang
from rig.programs.cache import Cache, cache_of
from rig.programs.recipes import Archived, GoProgram, GoRecipe, Installed, Recipe, Unpacked
from rig.programs.steps import Lines, Step, Task, run, spent, to_stderr


@dataclass(frozen=True)
class Programs:
    """The absolute path of each program by its name: `programs["kubelet"]`."""

    paths: Mapping[str, Path]

    def __getitem__(self, name: str) -> Path:
        if name in self.paths:
            return self.paths[name]
        if name in catalogue.known_names():
            raise RigError(f"{name} was not asked for: name it to rig.programs.ensure()")
        raise RigError(f"the rig has no program named {name}; there is: {', '.join(sorted(self.paths))}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    @property
    def folders(self) -> frozenset[Path]:
        return frozenset(path.parent for path in self.paths.values())

    @property
    def cni(self) -> Path:
        return self["bridge"].parent


_ANSWERS_WITHIN_S: Final = 60
_MIB: Final = 1 << 20


def ensure(*names: str, say: Callable[[str], None] = to_stderr) -> Programs:
    """The programs of the named groups and components, by default all that a rig needs; builds what is missing."""
    return provide(names, Lines(say))


def provide(names: Sequence[str], teller: Lines) -> Programs:
    recipes = catalogue.chosen(names)
    cache = cache_of(os.environ)
    try:
        _make([recipe for recipe in recipes if find(recipe, cache) is None], cache, teller)
    except OSError as error:
        raise BuildFailed(
            f"cannot keep the rig's programs in {cache.root}: {error}; PARTAGE_RIG_CACHE moves it"
        ) from error
    return Programs({name: path for recipe in recipes for name, path in (find(recipe, cache) or {}).items()})


def find(recipe: Recipe, cache: Cache) -> Mapping[str, Path] | None:
    """A component's programs, or None unless all of them exist."""
    match recipe:
        case Installed():
            return debian.find_installed(recipe)
        case Unpacked():
            return _find_unpacked(recipe, cache)
        case Archived():
            return _all_there(archive.archived(recipe, cache))
        case GoRecipe():
            folder = cache.entry(golang.key(recipe)) / "bin"
            return _all_there({program.name: folder / program.name for program in recipe.programs})


def _find_unpacked(recipe: Unpacked, cache: Cache) -> Mapping[str, Path] | None:
    own = debian.located(recipe.find)
    path = own or cache.entry(debian.unpacked_key(recipe)) / "bin" / Path(recipe.inside).name
    return _all_there({recipe.find.name: path})


def _all_there(paths: Mapping[str, Path]) -> Mapping[str, Path] | None:
    return paths if all(os.access(path, os.X_OK) for path in paths.values()) else None


def _make(missing: Sequence[Recipe], cache: Cache, teller: Lines) -> None:
    if installed := [recipe for recipe in missing if isinstance(recipe, Installed)]:
        with cache.lock("apt", teller):
            _install([recipe for recipe in installed if find(recipe, cache) is None], cache, teller)
    for recipe in missing:
        if isinstance(recipe, Unpacked):
            with cache.lock(debian.unpacked_key(recipe), teller):
                if find(recipe, cache) is None:
                    debian.unpack(recipe, cache, Task(recipe.name, cache.log(debian.unpacked_key(recipe)), teller))
        if isinstance(recipe, Archived):
            with cache.lock(archive.archived_key(recipe), teller):
                if find(recipe, cache) is None:
                    archive.fetch(recipe, cache, Task(recipe.name, cache.log(archive.archived_key(recipe)), teller))
    _build([recipe for recipe in missing if isinstance(recipe, GoRecipe)], cache, teller)


def _install(recipes: Sequence[Installed], cache: Cache, teller: Lines) -> None:
    if recipes:
        debian.install(recipes, Task(", ".join(recipe.name for recipe in recipes), cache.log("apt"), teller))


def _build(recipes: Sequence[GoRecipe], cache: Cache, teller: Lines) -> None:
    if not recipes:
        return
    go = golang.find_go(cache, teller)
    for number, recipe in enumerate(recipes, 1):
        key = golang.key(recipe)
        with cache.lock(key, teller):
            if find(recipe, cache) is None:
                title = f"{recipe.name} {recipe.version} ({number} of {len(recipes)})"
                _build_one(recipe, go, cache, Task(title, cache.log(key), teller))


def _build_one(recipe: GoRecipe, go: golang.Go, cache: Cache, task: Task) -> None:
    task.teller.line(f"{task.title}: building, log {task.log}")
    plan, key = golang.plan(recipe), golang.key(recipe)
    with cache.workplace(key) as work:
        made = work / "made"
        made.mkdir()
        (made / "go.mod").write_text(plan.module)
        env = {**go.environment(cache, golang.scratch_of(work)), **dict(plan.variables)}
        for command in plan.commands:
            run(task, Step((str(go.program), *command[1:]), made, env))
        for built, name in plan.renames:
            (made / "bin" / built).rename(made / "bin" / name)
        for program in recipe.programs:
            _check(program, made / "bin" / program.name, recipe.version, task)
        size = sum(file.stat().st_size for file in (made / "bin").iterdir())
        cache.publish(made, key)
    task.teller.line(f"{task.title}: done, {spent(task.seconds)}, {size // _MIB} MiB")


def _check(program: GoProgram, path: Path, version: str, task: Task) -> None:
    """Check that the program runs and reports its version: a linker flag for an unknown variable fails silently."""
    env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(path.parent)}
    try:
        done = subprocess.run(
            [path, *program.asked],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=env,
            cwd=path.parent,
            timeout=_ANSWERS_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise task.failed(f"{program.name} does not run: {error}") from error
    said = done.stdout + done.stderr
    if version not in said:
        raise task.failed(f"{program.name} should say {version}; it says: {said.strip()[:200] or '(nothing)'}")
