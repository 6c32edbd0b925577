"""Where no memory moves, an allocation and a launch execute no instruction of the code that moves memory."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from bench.isolation.lease import Time, lending
from bench.isolation.programs import programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind, which is a package of that name"),
    pytest.mark.extended("runs programs under callgrind; nothing but the slots of the driver leads to that code"),
]

FEW, MANY = 10, 60
CALLGRIND: Final = ("valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no")
OURS: Final = re.compile(r"preload/(migration|presence)/")
OF_A_FILE: Final = re.compile(r"f[lie]=(.*)")
COST: Final = re.compile(r"\d+ (\d+)")


def executed(report: Path) -> Iterator[tuple[str, int]]:
    """Source files and instructions executed in them; instructions of a callee count in its own file."""
    file, is_of_a_call = "", False
    for line in report.read_text().splitlines():
        if found := OF_A_FILE.fullmatch(line):
            file = found[1]
        elif line.startswith("calls="):
            is_of_a_call = True
        elif found := COST.fullmatch(line):
            if not is_of_a_call:
                yield file, int(found[1])
            is_of_a_call = False


def of_moving(report: Path, *words: object) -> int:
    """Instructions in the code that moves memory, of a whole program run with these words and the driver's path."""
    with lending(Time.FREE) as place:
        told = [str(place.driver) if word == "driver" else str(word) for word in words]
        argv = [*CALLGRIND, f"--callgrind-out-file={report}", str(programs() / told[0]), *told[1:]]
        subprocess.run(argv, env=dict(place.environment), input=b"\n\n", capture_output=True, check=True)
    return sum(count for file, count in executed(report) if OURS.search(file))


def test_an_allocation(tmp_path: Path) -> None:
    few, many = (of_moving(tmp_path / "report", "measure", "memory", "driver", 2, 3, each) for each in (FEW, MANY))
    assert few > 0, "the program's start asks once whether memory moves"
    assert many == few


@pytest.mark.parametrize("kind", ["kernel", "wide", "graph"])
def test_a_launch(tmp_path: Path, kind: str) -> None:
    few, many = (of_moving(tmp_path / "report", "launching", kind, "driver", 1, 2, each) for each in (FEW, MANY))
    assert few > 0
    assert many == few
