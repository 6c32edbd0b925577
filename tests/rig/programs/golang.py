"""Builds programs from Go modules.

`plan` is pure and says everything: the go.mod, the commands and the variables. Its hash is part of the entry's key, so
that nothing which decides what a program becomes can change without it being built anew. `go get` settles every
dependency from the versions in go.mod files, which is deterministic, and writes their checksums; the build then may
change neither. What is fetched, from where and how it is checked, is up to go's own settings on this machine.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig.programs.recipes import GoProgram, GoRecipe

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_GO_LINE: Final = "go 1.26.0"


@dataclass(frozen=True)
class Plan:
    """What to write and what to run, in an empty folder; programs come to lie in its bin/."""

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
    """What go sees: all that the user has set, but nothing of this checkout and no other toolchain.

    `changed` is what `go env -changed` tells: a cache that the user has moved stays where it is.
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
    """The name that go gives: the last part of the path that is no major version."""
    parts = program.package.split("/")
    return parts[-2] if parts[-1][:1] == "v" and parts[-1][1:].isdigit() else parts[-1]


def scratch_of(work: Path) -> Path:
    """Where go puts what it makes on the way; it takes no folder that is not there."""
    scratch = work / "tmp"
    scratch.mkdir(exist_ok=True)
    return scratch


def user_environment() -> dict[str, str]:
    """This process' environment without GOROOT, which may be another Go's, and without an empty HOME, which is none."""
    return {name: value for name, value in os.environ.items() if name != "GOROOT" and (value or name != "HOME")}
