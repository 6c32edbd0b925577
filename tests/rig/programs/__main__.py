"""`python -m rig.programs`: builds and caches the programs of the rig; see --help."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from rig.errors import RigError
from rig.programs import catalogue, provision
from rig.programs.cache import Cache, cache_of
from rig.programs.recipes import GoRecipe, Recipe
from rig.programs.steps import Lines, to_stderr

_MIB: Final = 1 << 20
_ABOUT: Final = """\
Makes the real programs that the rig runs, once, and keeps them: Kubernetes, containerd, CRI tools and etcd from Go
modules, the rest from Debian. What is there is not made again; what was interrupted goes on where it stopped."""
_NAMES: Final = f"""\
names:
  groups      {", ".join(catalogue.GROUPS)}
  components  {", ".join(recipe.name for recipe in catalogue.GROUPS["all"])}
  releases    {", ".join(catalogue.RELEASES)}
  or any program's name, such as kubelet

environment:
  PARTAGE_RIG_CACHE   where to keep everything; otherwise $XDG_CACHE_HOME/partage/rig or ~/.cache/partage/rig
  GOPROXY, GOFLAGS... go's own settings, also those of `go env -w`, hold as always"""


class _Ended(BaseException):
    """Raised by a signal, so that running steps are stopped in order, as on Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 all available, 1 a build failed, 2 an unknown name, 130 interrupted."""
    asked = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGHUP, _end)
    try:
        catalogue.chosen(asked.names)
    except RigError as unknown:
        to_stderr(f"rig: {unknown}")
        return 2
    try:
        return _list(asked.names) if asked.list else _build(asked.names)
    except RigError as error:
        to_stderr(f"rig: {error}")
        return 1
    except (KeyboardInterrupt, _Ended) as end:
        to_stderr("\nrig: interrupted; the next run goes on from here")
        return end.status if isinstance(end, _Ended) else 128 + signal.SIGINT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "rig-build", description=_ABOUT, epilog=_NAMES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to make; without any, all that a rig needs")
    parser.add_argument("--list", action="store_true", help="make nothing; show each component, and where it is")
    return parser


def _build(names: Sequence[str]) -> int:
    programs = provision.provide(names, Lines(to_stderr))
    to_stderr(f"rig: {', '.join(programs)}: there")
    return 0


def _list(names: Sequence[str]) -> int:
    cache = cache_of(os.environ)
    for recipe in catalogue.chosen(names) if names else catalogue.every_recipe():
        title, where = _row(recipe, cache)
        print(f"{title:32}{where}")  # noqa: T201
    return 0


def _row(recipe: Recipe, cache: Cache) -> tuple[str, str]:
    title = f"{recipe.name} {recipe.version}" if isinstance(recipe, GoRecipe) else recipe.name
    found = provision.find(recipe, cache)
    if found is None:
        return (title, "  missing")
    size_mib = sum(path.stat().st_size for path in found.values()) / _MIB
    folder: Path = next(iter(found.values())).parent
    return (title, f"{size_mib:6.1f} MiB  {folder}: {', '.join(found)}")


def _end(number: int, _: FrameType | None) -> NoReturn:
    raise _Ended(number)


if __name__ == "__main__":
    sys.exit(main())
