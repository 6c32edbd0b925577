"""The tables of names match NVIDIA's headers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from support.nvidia import CUDA_RUNTIME, nvml_header, unpacked

NAMES: Final = Path(__file__).parents[4] / "isolation/driver"


@pytest.mark.slow
def test_the_tables_are_what_the_headers_make_of_them() -> None:
    include = next(unpacked(CUDA_RUNTIME).rglob("cuda.h")).parent
    command = [sys.executable, str(NAMES / "names.py"), str(include), str(nvml_header()), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_whatever_cugetprocaddress_finds_is_one_of_the_names() -> None:
    routes = re.findall(r"^ROUTE\((\w+), \d+, [01], (\w+)\)", (NAMES / "cuda.def").read_text(), flags=re.MULTILINE)
    assert {name for name, _ in routes} <= {function for _, function in routes}
