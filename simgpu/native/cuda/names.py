# ruff: noqa: INP001 (a script beside the C files, of no package)
"""Writes and checks two tables: `names.def`, what libcuda exports, and `routes.def`, what cuGetProcAddress knows.

It reads NVIDIA's headers and keeps nothing of them but interface facts: which functions there are, and with which
version of CUDA each of their forms came. Whether a name is REAL or ABSENT is nobody's choice: the sources define it.

    names.py INCLUDE            write both tables, from the headers in the folder INCLUDE
    names.py INCLUDE --check    exit 1, and say what differs, if the committed tables are not what would be written
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
HEADS = {
    "names.def": "/* Every name that cuda.h declares in any form. Written by names.py. */\n",
    "routes.def": (
        "/* What cuGetProcAddress finds: a name, the version of CUDA from which on, for which default stream, and the"
        " function.\n * Sorted by name, then newest first. Written by names.py. */\n"
    ),
}
VARIANTS = (("__CUDA_API_VERSION_INTERNAL",), ("CUDA_API_PER_THREAD_DEFAULT_STREAM",), ())
DECLARED = re.compile(r"(?<!inline )\bCUresult\s+(?:\w+\s+)*?(cu[A-Z]\w*)\s*\(")
FORM = re.compile(r"PFN_(cu[A-Z]\w*?)_v(\d+)(_ptsz|_ptds)?\)")
DEFINED = re.compile(r'visibility\("default"\)\)\) CUresult (cu\w+)\(')


class Route(NamedTuple):
    """One thing that cuGetProcAddress finds."""

    name: str
    version: int
    per_thread: bool
    symbol: str


def preprocessed(path: Path, *options: str) -> str:
    """A C file without comments, and with all that it includes."""
    command = ["cc", "-E", "-P", "-xc", *options, str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 (a compiler, on our files)


def profiler_forms(include: Path) -> str:
    """The profiler's function types: its own header is in another package than the rest."""
    return (include / "cudaProfilerTypedefs.h").read_text()


def exported_names(include: Path) -> set[str]:
    """Every function name in any form: with version, with the suffix of a default stream, and before version 2."""
    found = {name for name, _, _ in FORM.findall(profiler_forms(include))}
    for defines in VARIANTS:
        found |= set(DECLARED.findall(preprocessed(include / "cuda.h", *(f"-D{each}" for each in defines))))
    return found


def forms(include: Path) -> dict[str, dict[tuple[int, str], None]]:
    """For each name the versions and suffixes of its forms, from the function types of cudaTypedefs.h."""
    found: dict[str, dict[tuple[int, str], None]] = {}
    text = preprocessed(include / "cudaTypedefs.h", f"-I{include}", "-D__CUDA_API_VERSION_INTERNAL") + profiler_forms(
        include
    )
    for name, version, suffix in FORM.findall(text):
        found.setdefault(name, {})[int(version), suffix] = None
    return found


def symbol_of(name: str, version: int, suffix: str, plain: list[int]) -> str:
    """The exported symbol: the n-th version of a function is name_vn, default-stream forms follow."""
    current = max((each for each in plain if each <= version), default=plain[0])
    place = plain.index(current)
    versioned = f"_v{place + 1}" if place else ""
    return name + versioned + suffix


def routes(include: Path, names: set[str]) -> list[Route]:
    """All that cuGetProcAddress finds. A function without a per-thread form is found for both default streams."""
    found: list[Route] = []
    for name, known in forms(include).items():
        plain = sorted(version for version, suffix in known if not suffix)
        for version, suffix in known:
            found.append(Route(name, version, bool(suffix), symbol_of(name, version, suffix, plain)))
    unknown = sorted({route.symbol for route in found} - names)
    if unknown:
        sys.exit(f"names.py: cudaTypedefs.h: no such functions in cuda.h: {', '.join(unknown)}")
    return sorted(found, key=lambda route: (route.name, -route.version, route.per_thread))


def defined_names() -> set[str]:
    """The names that the sources beside this file define."""
    (HERE / "routes.def").touch()
    option = f"-I{HERE.parent / 'common'}"
    return {name for source in HERE.glob("*.c") for name in DEFINED.findall(preprocessed(source, option))}


def tables(include: Path) -> dict[str, str]:
    """Both tables as text, by file name."""
    names = exported_names(include)
    real = defined_names()
    strange = sorted(real - names)
    if strange:
        sys.exit(f"names.py: defined here but not declared by cuda.h: {', '.join(strange)}")
    lines = [f"{'REAL' if name in real else 'ABSENT'}({name})\n" for name in sorted(names)]
    ways = [
        f"ROUTE({way.name}, {way.version}, {'PER_THREAD' if way.per_thread else 'LEGACY'}, {way.symbol})\n"
        for way in routes(include, names)
    ]
    return {"names.def": HEADS["names.def"] + "".join(lines), "routes.def": HEADS["routes.def"] + "".join(ways)}


def differences(wanted: dict[str, str]) -> list[str]:
    """What is not as it would be written, a line each."""
    said: list[str] = []
    for name, text in wanted.items():
        path = HERE / name
        there = set(path.read_text().splitlines() if path.exists() else ())
        here = set(text.splitlines())
        said += [f"{name}: missing: {line}" for line in sorted(here - there)]
        said += [f"{name}: not in the headers: {line}" for line in sorted(there - here)]
    return said


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="write or check the tables of names of the simulated libcuda")
    parser.add_argument("include", type=Path, help="the folder of cuda.h and cudaTypedefs.h")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the tables differ")
    options = parser.parse_args()
    wanted = tables(options.include)
    if options.check:
        said = differences(wanted)
        sys.stdout.write("".join(f"{line}\n" for line in said))
        return 1 if said else 0
    for name, text in wanted.items():
        (HERE / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
