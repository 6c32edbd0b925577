"""Recipes: everything that determines how a component is made. Pure data.

There are four kinds. A `GoRecipe` is built from Go modules into the cache. An `Unpacked` is a Debian package of which
one program is kept in the cache: installed, it would start a service or replace the machine's. An `Installed` is a
Debian package that works only when installed. An `Archived` is files of packages of a Debian release that may differ
from the machine's.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GoProgram:
    """One program, and the flags with which it prints its version."""

    name: str
    package: str
    asked: tuple[str, ...] = ("--version",)
    is_test: bool = False
    """The program is its package's test binary, as critest is."""


@dataclass(frozen=True)
class Staging:
    """Modules of the same source tree, which their parent requires at v0.0.0: each is replaced by its release."""

    version: str
    modules: tuple[str, ...]


@dataclass(frozen=True)
class GoRecipe:
    """Programs of one module, with a separate go.mod, because the components' dependencies conflict."""

    name: str
    version: str
    programs: tuple[GoProgram, ...]
    tags: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    """Go variables set by the linker: without them programs report an unknown version."""
    staging: Staging | None = None
    cgo: bool = False


@dataclass(frozen=True)
class Find:
    """Where a program may be: a bare name is searched on PATH, a path may have wildcards."""

    name: str
    places: tuple[str, ...]
    beside: tuple[str, ...] = ()
    is_static: bool = False
    """It must run in a container without libraries."""


@dataclass(frozen=True)
class Installed:
    name: str
    packages: tuple[str, ...]
    finds: tuple[Find, ...]


@dataclass(frozen=True)
class Unpacked:
    """A package of which only one program is needed, at `inside` within it."""

    name: str
    package: str
    inside: str
    find: Find
    """The system's own program, which is used if it exists."""
    beside: tuple[str, ...] = ()
    """Other programs in the same folder of the package, which it starts."""


@dataclass(frozen=True)
class Package:
    """A package of a Debian release, of which one file is needed."""

    name: str
    sha256: str
    inside: str
    """A pattern that matches one path in it."""
    wanted: str
    """The file's new name."""


@dataclass(frozen=True)
class Archived:
    """Packages of one source in one version; their files are kept together, in a system's library folder."""

    name: str
    release: str
    section: str
    version: str
    packages: tuple[Package, ...]


Recipe = GoRecipe | Installed | Unpacked | Archived


def programs_of(recipe: Recipe) -> tuple[str, ...]:
    """The names by which a recipe's programs are requested."""
    match recipe:
        case GoRecipe():
            return tuple(program.name for program in recipe.programs)
        case Installed():
            return tuple(find.name for find in recipe.finds)
        case Unpacked():
            return (recipe.find.name,)
        case Archived():
            return tuple(f"{package.wanted}@{recipe.name}" for package in recipe.packages)
