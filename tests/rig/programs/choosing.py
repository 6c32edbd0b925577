"""Which components a list of names means. Pure.

A name is a group's, a component's or a program's. Whatever is built with cgo brings the C compiler with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rig.programs import catalogue
from rig.programs.recipes import GoRecipe, Recipe, programs_of
from rig.errors import RigError


def chosen(names: Sequence[str]) -> tuple[Recipe, ...]:
    """The components that the names mean, each once, in the order in which they are best made."""
    wanted = {recipe for name in names or ("default",) for recipe in _meant(name)}
    if any(isinstance(recipe, GoRecipe) and recipe.cgo for recipe in wanted):
        wanted.add(catalogue.GCC)
    return tuple(recipe for recipe in catalogue.GROUPS["all"] if recipe in wanted)


def known_names() -> tuple[str, ...]:
    """Every name that may be asked for: groups, then components, then programs."""
    return tuple(dict.fromkeys(_every_name()))


def _every_name() -> Iterator[str]:
    yield from catalogue.GROUPS
    yield from (recipe.name for recipe in catalogue.GROUPS["all"])
    for recipe in catalogue.GROUPS["all"]:
        yield from programs_of(recipe)


def _meant(name: str) -> Sequence[Recipe]:
    if name in catalogue.GROUPS:
        return catalogue.GROUPS[name]
    found = [recipe for recipe in catalogue.GROUPS["all"] if name == recipe.name or name in programs_of(recipe)]
    if not found:
        raise RigError(f"the rig has nothing named {name}; there is: {', '.join(known_names())}")
    return found
