"""The locks: exactly what each tree is made from. Pure.

`debian-<machine>.txt` has one package a line: name, version, SHA-256 and the path below a mirror. It names no mirror,
so it works with any. `<tree>.lock` has pip's format, with the hash of every wheel.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_bundle.errors import BundleError

FOLDER: Final = Path(__file__).parents[1] / "locks"
_LINE: Final = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9+.-]+) (?P<version>\S+) (?P<digest>[0-9a-f]{64}) (?P<path>pool/\S+)"
)
_HEAD: Final = "# Written by tools/lock: name, version, SHA-256, path below a mirror.\n"


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    digest: str
    path: str


def debian(machine: str) -> Path:
    return FOLDER / f"debian-{machine}.txt"


def wheels(tree: str) -> Path:
    return FOLDER / f"{tree}.lock"


def read(text: str, source: str) -> dict[str, Package]:
    """The packages by name. Raises `BundleError` for an invalid line."""
    found: dict[str, Package] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None or ".." in match["path"]:
            raise BundleError(
                f"{source}:{number}: expected NAME VERSION SHA-256 PATH, found {line!r}; tools/lock writes it"
            )
        found[match["name"]] = Package(match["name"], match["version"], match["digest"], match["path"])
    return found


def chosen(packages: dict[str, Package], names: Iterable[str], source: str) -> list[Package]:
    missing = sorted(set(names) - set(packages))
    if missing:
        raise BundleError(f"{source} lacks {', '.join(missing)}; tools/lock writes it")
    return [packages[name] for name in sorted(names)]


def written(packages: Sequence[Package]) -> str:
    lines = [f"{each.name} {each.version} {each.digest} {each.path}\n" for each in packages]
    return _HEAD + "".join(sorted(lines))


def package_of(stanza: str) -> Package:
    """Parses what apt-cache prints about one package."""
    fields = dict(re.findall(r"^([A-Za-z0-9-]+): (.*)$", stanza, re.MULTILINE))
    try:
        return Package(fields["Package"], fields["Version"], fields["SHA256"], fields["Filename"])
    except KeyError as error:
        raise BundleError(f"apt-cache says no {error.args[0]} of a package: {stanza[:80]!r}") from error


def requirements(pyproject: str, extra: str) -> list[str]:
    """The requirements that a tree's lock is made from."""
    project = tomllib.loads(pyproject)["project"]
    return [*project["dependencies"], *project["optional-dependencies"][extra]]
