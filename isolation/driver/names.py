# ruff: noqa: INP001 (a script beside the tables, of no package)
"""Writes and checks the tables of the drivers' exports: `cuda.def` and `nvml.def`.

It reads NVIDIA's headers and keeps only interface facts: the functions, and the CUDA version that introduced each of
their forms.

    names.py CUDA_INCLUDE NVML_HEADER            write the tables
    names.py CUDA_INCLUDE NVML_HEADER --check    exit 1, and print the differences, if the tables are not current
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
    "cuda.def": """\
/* Every function that libcuda exports, in any form, by NVIDIA's headers. Written by names.py.
 *
 * ROUTE: what cuGetProcAddress finds: a name, the version of CUDA from which on, whether for per-thread default
 * streams, and the function. Sorted by name, then newest first. To readers that define no ROUTE it is a NAME.
 * NAME: a function that cuGetProcAddress does not find, as those of the headers for graphics.
 */
#ifndef NAME
#define NAME(function)
#endif
#ifndef ROUTE
#define ROUTE(name, version, per_thread, function) NAME(function)
#endif
""",
    "nvml.def": """\
/* Every function that libnvidia-ml exports, by NVIDIA's header. Written by names.py. */
#ifndef NAME
#define NAME(function)
#endif
""",
}
TAIL = "#undef ROUTE\n#undef NAME\n"
VARIANTS = (("__CUDA_API_VERSION_INTERNAL",), ("CUDA_API_PER_THREAD_DEFAULT_STREAM",), ())
DECLARED = re.compile(r"(?<!inline )\bCUresult\s+(?:\w+\s+)*?(cu[A-Z]\w*)\s*\(")
FORM = re.compile(r"PFN_(cu[A-Z]\w*?)_v(\d+)(_ptsz|_ptds)?\)")
GRAPHICS = ("cudaGL.h", "cudaEGL.h", "cudaVDPAU.h")
GRAPHICS_DECLARED = re.compile(r"^[^\n#/*]*\bCUresult\s+CUDAAPI\s+(cu[A-Z]\w*)\s*\(", flags=re.MULTILINE)
GRAPHICS_RENAMED = re.compile(
    r"^\s*#\s*define\s+(cu[A-Z]\w*)\s+(?:__CUDA_API_(PT[SD][SZ])\()?(cu[A-Z]\w*)", flags=re.MULTILINE
)
SUFFIXES = {"PTSZ": "_ptsz", "PTDS": "_ptds"}
NOT_ON_LINUX = {"cuWGLGetDevice"}


class Route(NamedTuple):
    """A function that cuGetProcAddress finds."""

    name: str
    version: int
    per_thread: bool
    symbol: str


def preprocessed(path: Path, *options: str) -> str:
    """A preprocessed header without comments, with all that it includes."""
    command = ["cc", "-E", "-P", "-xc", *options, str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 (a compiler, on headers)


def profiler_forms(include: Path) -> str:
    """The profiler's function types: their header is in another package than the rest."""
    return (include / "cudaProfilerTypedefs.h").read_text()


def computing_names(include: Path) -> set[str]:
    """The functions of cuda.h in any form: versioned, with a default stream's suffix, and from before version 2."""
    found = {name for name, _, _ in FORM.findall(profiler_forms(include))}
    for defines in VARIANTS:
        found |= set(DECLARED.findall(preprocessed(include / "cuda.h", *(f"-D{each}" for each in defines))))
    return found


def graphics_names(header: str) -> set[str]:
    """The functions that one of the graphics headers declares, in every form."""
    found = set(GRAPHICS_DECLARED.findall(header))
    for _, per_thread, name in GRAPHICS_RENAMED.findall(header):
        found |= {name, name + SUFFIXES.get(per_thread, "")}
    return found - NOT_ON_LINUX


def nvml_names(header: str) -> set[str]:
    """The functions that nvml.h declares, in every version of their names."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*(?:\\\n[^\n]*)*", "", header, flags=re.DOTALL | re.MULTILINE)
    return set(re.findall(r"\bDECLDIR\s+(?:char\s*\*\s*)?(nvml\w+)\s*\(", code))


def forms(include: Path) -> dict[str, dict[tuple[int, str], None]]:
    """The versions and suffixes of each name's forms, from the function types of cudaTypedefs.h."""
    found: dict[str, dict[tuple[int, str], None]] = {}
    text = preprocessed(include / "cudaTypedefs.h", f"-I{include}", "-D__CUDA_API_VERSION_INTERNAL")
    for name, version, suffix in FORM.findall(text + profiler_forms(include)):
        found.setdefault(name, {})[int(version), suffix] = None
    return found


def symbol_of(name: str, version: int, suffix: str, plain: list[int]) -> str:
    """The exported symbol: the n-th version of a function is name_vn; a default stream's suffix follows."""
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
    symbols = [route.symbol for route in found]
    unknown = sorted(set(symbols) - names)
    if unknown:
        sys.exit(f"names.py: cudaTypedefs.h: no such functions in cuda.h: {', '.join(unknown)}")
    if len(set(symbols)) < len(symbols):
        sys.exit("names.py: cudaTypedefs.h: one function has two routes")
    return sorted(found, key=lambda route: (route.name, -route.version, route.per_thread))


def tables(include: Path, nvml: Path) -> dict[str, str]:
    """All tables as text, by file name."""
    computing = computing_names(include)
    cuda = computing.union(*(graphics_names((include / header).read_text()) for header in GRAPHICS))
    found = routes(include, computing)
    unrouted = sorted(cuda - {way.symbol for way in found})
    ways = [f"ROUTE({way.name}, {way.version}, {int(way.per_thread)}, {way.symbol})" for way in found]
    lines = {
        "cuda.def": [*ways, *(f"NAME({name})" for name in unrouted)],
        "nvml.def": [f"NAME({name})" for name in sorted(nvml_names(nvml.read_text()))],
    }
    return {file: HEADS[file] + "".join(f"{line}\n" for line in lines[file]) + TAIL for file in lines}


def differences(wanted: dict[str, str]) -> list[str]:
    """All missing and surplus lines of the tables."""
    said: list[str] = []
    for name, text in wanted.items():
        there, here = set((HERE / name).read_text().splitlines()), set(text.splitlines())
        said += [f"{name}: missing: {line}" for line in sorted(here - there)]
        said += [f"{name}: not in the headers: {line}" for line in sorted(there - here)]
    return said


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="write or check the tables of names that the drivers export")
    parser.add_argument("include", type=Path, help="the folder of cuda.h and cudaTypedefs.h")
    parser.add_argument("nvml", type=Path, help="nvml.h")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the tables differ")
    options = parser.parse_args()
    wanted = tables(options.include, options.nvml)
    if options.check:
        said = differences(wanted)
        sys.stdout.write("".join(f"{line}\n" for line in said))
        return 1 if said else 0
    for name, text in wanted.items():
        (HERE / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
