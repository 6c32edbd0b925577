"""What a recipe is: all that decides what a component becomes. Pure data.

Four kinds. A `GoRecipe` is built from Go modules and lies in the cache. An `Unpacked` is a Debian package of which one
program lies in the cache: installed, it would start a service or replace what the machine has. An `Installed` is a
Debian package that works only where the system puts it. An `Archived` is files of packages of a Debian that need not be
the machine's.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GoProgram:
    """One program, and the flags to which it answers with its version."""

    name: str
    package: str
    asked: tuple[str, ...] = ("--version",)
    is_test: bool = False
    """It is the tests of its package: critest is."""


@dataclass(frozen=True)
class Staging:
    """Modules of the same source tree, which their parent requires at v0.0.0: each is replaced by its release."""

    version: str
    modules: tuple[str, ...]


@dataclass(frozen=True)
class GoRecipe:
    """Programs of one module, with a go.mod of their own: the components' dependencies clash."""

    name: str
    version: str
    programs: tuple[GoProgram, ...]
    tags: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    """Go variables set by the linker: without them programs call themselves unknown."""
    staging: Staging | None = None
    cgo: bool = False


@dataclass(frozen=True)
class Find:
    """Where a program may be: a bare name is looked for on PATH, a path may have wildcards."""

    name: str
    places: tuple[str, ...]
    beside: tuple[str, ...] = ()
    is_static: bool = False
    """It must run in a container that has no libraries."""


@dataclass(frozen=True)
class Installed:
    name: str
    packages: tuple[str, ...]
    finds: tuple[Find, ...]


@dataclass(frozen=True)
class Unpacked:
    """A package of which only one program is wanted, at `inside` within it."""

    name: str
    package: str
    inside: str
    find: Find
    """The same program of the system's own, which will do."""
    beside: tuple[str, ...] = ()
    """Others of the package that lie in the same folder and that it starts."""


@dataclass(frozen=True)
class Package:
    """One of a release of Debian, of which one file is wanted."""

    name: str
    sha256: str
    inside: str
    """A pattern, which fits one path in it."""
    wanted: str
    """The name that the file gets."""


@dataclass(frozen=True)
class Archived:
    """Packages of one source in one version; their files lie together, where a system has its libraries."""

    name: str
    release: str
    section: str
    version: str
    packages: tuple[Package, ...]


Recipe = GoRecipe | Installed | Unpacked | Archived


def programs_of(recipe: Recipe) -> tuple[str, ...]:
    """The names by which a recipe's programs are asked for."""
    match recipe:
        case GoRecipe():
            return tuple(program.name for program in recipe.programs)
        case Installed():
            return tuple(find.name for find in recipe.finds)
        case Unpacked():
            return (recipe.find.name,)
        case Archived():
            return tuple(f"{package.wanted}@{recipe.name}" for package in recipe.packages)
