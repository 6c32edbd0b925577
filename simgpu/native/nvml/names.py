# ruff: noqa: INP001 (a script beside the C files, of no package)
"""Makes or checks `names.def`, the table of NVML's names, from a copy of nvml.h.

    python3 names.py /path/to/nvml.h            says what the table lacks and what it has too much; exit 1 if anything
    python3 names.py /path/to/nvml.h --write    writes it anew

A name is REAL where a file beside this one defines it, else ABSENT: exported, and answers NOT_SUPPORTED.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE / "names.def"
HEAD = """\
/* Every function of nvml.h: REAL where a file beside this one has it, ABSENT where it answers NOT_SUPPORTED.
 * Written by names.py. */
"""


def declared(header: str) -> set[str]:
    """The functions that nvml.h declares, in every version of their names."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*(?:\\\n[^\n]*)*", "", header, flags=re.DOTALL | re.MULTILINE)
    return set(re.findall(r"\bDECLDIR\s+(?:char\s*\*\s*)?(nvml\w+)\s*\(", code))


def defined(folder: Path = HERE) -> set[str]:
    """The functions that the C files define."""
    code = "".join(file.read_text() for file in sorted(folder.glob("*.c")))
    return {
        *re.findall(r"^NVML\((nvml\w+)", code, flags=re.MULTILINE),
        *re.findall(r"^[A-Z_]+\((nvml\w+)", code, flags=re.MULTILINE),
        *re.findall(r"^const char \*(nvml\w+)\(", code, flags=re.MULTILINE),
    }


def table(names: set[str], real: set[str]) -> str:
    """The text of names.def."""
    return HEAD + "".join(f"{'REAL' if name in real else 'ABSENT'}({name})\n" for name in sorted(names))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compares names.def with a copy of nvml.h.")
    parser.add_argument("header", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    wanted = table(declared(arguments.header.read_text()), defined())
    if arguments.write:
        TABLE.write_text(wanted)
        return 0
    have, want = set(TABLE.read_text().splitlines()), set(wanted.splitlines())
    for line in sorted(want ^ have):
        sys.stdout.write(f"{'lacks' if line in want else 'has too much'}: {line}\n")
    return int(want != have)


if __name__ == "__main__":
    sys.exit(main())
