"""Checks a carried folder before it is used: `python3 carried.py FOLDER [CHECKOUT]`. Standard library only.

It must be for this interpreter, complete, and made from the sources of the checkout that contains it. Exit 1: it is
not.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

BUILT = "built"
COMMIT, PYTHON, SUMS = "commit", "python", "sums"
AGAIN = "run `tools/real carry` again where partage was made ready"


class Unfit(Exception):
    """The folder is unusable here; the message says why."""


def sum_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check(folder: Path, checkout: Path | None, python: str) -> None:
    """Raise `Unfit` if it is unusable."""
    try:
        sums = _sums(folder)
        meant, commit = ((folder / name).read_text().strip() for name in (PYTHON, COMMIT))
    except (OSError, ValueError) as error:
        raise Unfit(f"{folder} is no carried folder: {error}; {AGAIN}") from error
    if meant != python:
        raise Unfit(
            f"{folder} is for Python {meant}, and this is {python}: name another one in PARTAGE_REAL_PYTHON, "
            f"or carry with --python {python}"
        )
    if differs := _differing(folder, sums):
        raise Unfit(f"{folder} is not whole: {differs} is missing or changed; carry it here again")
    sources = {name: sums[name] for name in sums if not name.startswith(f"{BUILT}/") and name not in (COMMIT, PYTHON)}
    if checkout and (differs := _differing(checkout, sources)):
        raise Unfit(
            f"{folder} is of commit {commit[:12]}, and this checkout is another one: {differs} differs; {AGAIN}"
        )


def _sums(folder: Path) -> Mapping[str, str]:
    lines = (folder / SUMS).read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def _differing(folder: Path, sums: Mapping[str, str]) -> str | None:
    for name, digest in sums.items():
        try:
            if sum_of(folder / name) != digest:
                return name
        except OSError:
            return name
    return None


def main(words: Sequence[str]) -> int:
    try:
        check(Path(words[0]), Path(words[1]) if words[1:] else None, "{}.{}".format(*sys.version_info[:2]))
    except Unfit as unfit:
        sys.stderr.write(f"real: {unfit}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
