# ruff: noqa: INP001 (a script beside the C files, of no package)
"""Writes and checks the tables of names: `cuda.def`, `nvml.def` (what the drivers export) and `routes.def`.

It reads NVIDIA's headers and keeps nothing of them but interface facts. How a header is read is known to the scripts of
the simulated GPU, which keep tables of the same facts; here are also the names of cudaGL.h, cudaEGL.h and cudaVDPAU.h.

    names.py CUDA_INCLUDE NVML_HEADER            write the tables
    names.py CUDA_INCLUDE NVML_HEADER --check    exit 1, and say what differs, if they are not what would be written
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent
HEADS = {
    "cuda.def": "/* Every name that libcuda exports, in any form, by NVIDIA's headers. Written by names.py. */\n",
    "nvml.def": "/* Every name that libnvidia-ml exports, by NVIDIA's header. Written by names.py. */\n",
    "routes.def": (
        "/* What cuGetProcAddress finds: a name, the version of CUDA from which on, for which default stream, and the"
        " function.\n * Written by names.py. */\n"
    ),
}
GRAPHICS = ("cudaGL.h", "cudaEGL.h", "cudaVDPAU.h")
NOT_ON_LINUX = {"cuWGLGetDevice"}
DECLARED = re.compile(r"^[^\n#/*]*\bCUresult\s+CUDAAPI\s+(cu[A-Z]\w*)\s*\(", flags=re.MULTILINE)
RENAMED = re.compile(r"^\s*#\s*define\s+(cu[A-Z]\w*)\s+(?:__CUDA_API_(PT[SD][SZ])\()?(cu[A-Z]\w*)", flags=re.MULTILINE)
SUFFIXES = {"PTSZ": "_ptsz", "PTDS": "_ptds"}


def reader(library: str) -> ModuleType:
    """The script of the simulated library that reads the same header."""
    path = HERE.parents[2] / "simgpu/native" / library / "names.py"
    spec = importlib.util.spec_from_file_location(f"simgpu_{library}_names", path)
    if spec is None or spec.loader is None:
        sys.exit(f"names.py: {path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def graphics_names(header: str) -> set[str]:
    """The functions that one of the headers for graphics declares, in every form."""
    found = set(DECLARED.findall(header))
    for _, per_thread, name in RENAMED.findall(header):
        found |= {name, name + SUFFIXES.get(per_thread, "")}
    return found - NOT_ON_LINUX


def tables(include: Path, nvml: Path) -> dict[str, str]:
    """All tables as text, by file name."""
    cuda = reader("cuda")
    names: set[str] = cuda.exported_names(include)
    ways = cuda.routes(include, names)
    names = names.union(*(graphics_names((include / header).read_text()) for header in GRAPHICS))
    routes = (f"ROUTE({way.name}, {way.version}, {int(way.per_thread)}, {way.symbol})" for way in ways)
    lines = {
        "cuda.def": [f"NAME({name})" for name in sorted(names)],
        "nvml.def": [f"NAME({name})" for name in sorted(reader("nvml").declared(nvml.read_text()))],
        "routes.def": list(routes),
    }
    return {file: HEADS[file] + "".join(f"{line}\n" for line in lines[file]) for file in lines}


def differences(wanted: dict[str, str]) -> list[str]:
    """What is not as it would be written, a line each."""
    said: list[str] = []
    for name, text in wanted.items():
        there, here = set((HERE / name).read_text().splitlines()), set(text.splitlines())
        said += [f"{name}: missing: {line}" for line in sorted(here - there)]
        said += [f"{name}: not in the headers: {line}" for line in sorted(there - here)]
    return said


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="write or check the tables of names that the library exports")
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
