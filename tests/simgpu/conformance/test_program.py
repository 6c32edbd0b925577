"""Cases that crash or hang, and broken drivers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from real_card.comparison import read_facts
from simgpu.conformance.programs import Facts, ended, started

pytestmark = pytest.mark.slow


def driver(folder: Path, code: str) -> dict[str, str]:
    """An environment in which this C code is the driver."""
    source = folder / "driver.c"
    source.write_text(f"#include <stdlib.h>\n{code}\n")
    command = ["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(folder / "libcuda.so.1"), str(source)]
    subprocess.run(command, check=True)
    return os.environ | {"LD_LIBRARY_PATH": str(folder)}


def told_by(environment: dict[str, str], *cases: str) -> Facts:
    status, told, said = ended(started(environment, *cases))
    assert (status, said) == (0, "")
    return read_facts(told, "told")


def test_a_case_that_crashes_is_told_and_the_others_are_run(tmp_path: Path) -> None:
    environment = driver(tmp_path, "int cuInit(unsigned flags) { if (!flags) abort(); return flags == 1 ? 1 : 0; }")
    facts = told_by(environment, "init.flags", "errors.names")
    assert facts["init.flags.unknown_flag"] == "CUDA_ERROR_INVALID_VALUE"
    assert facts["init.flags.outcome"] == "crash 6"
    assert facts["errors.names.outcome"] == "crash 6"


def test_a_function_that_the_driver_has_not_got_ends_its_case(tmp_path: Path) -> None:
    facts = told_by(driver(tmp_path, "int cuInit(unsigned flags) { return 0; }"), "cards.get")
    assert facts == {"cards.get.outcome": "stopped: missing cuDeviceGetCount"}


def test_a_refusal_of_what_a_case_needs_ends_it_with_the_code(tmp_path: Path) -> None:
    facts = told_by(driver(tmp_path, "int cuInit(unsigned flags) { return 100; }"), "cards.get", "nvml_life")
    assert facts.pop("cards.get.outcome") == "stopped: cuInit answered CUDA_ERROR_NO_DEVICE"
    assert all(value.startswith("stopped: no driver: libnvidia-ml.so.1") for value in facts.values())


def test_a_code_without_a_name_is_told_by_its_number(tmp_path: Path) -> None:
    facts = told_by(driver(tmp_path, "int cuInit(unsigned flags) { return 12345; }"), "init.flags")
    assert facts["init.flags.first"] == "code 12345"


def test_what_a_case_leaves_running_ends_with_it(tmp_path: Path) -> None:
    lingering = "#include <unistd.h>\nint cuInit(unsigned flags) { if (!fork()) for (;;) pause(); abort(); }"
    program = started(driver(tmp_path, lingering), "init.flags")
    assert ended(program)[0] == 0  # a process left behind would hold the pipe that is read to its end


def test_a_case_ends_with_the_program_that_was_killed(tmp_path: Path) -> None:
    waiting = '#include <unistd.h>\nint cuInit(unsigned flags) { write(1, "in", 2); for (;;) pause(); }'
    program = started(driver(tmp_path, waiting), "init.flags")
    assert program.stdout is not None
    assert program.stdout.read(2) == "in"
    program.kill()
    assert ended(program)[1] == ""  # a case that went on would hold the pipe that is read to its end


@pytest.mark.parametrize("name", ["memory.nothing", "mem", "memory.fre"])
def test_a_case_that_there_is_not_is_refused(name: str) -> None:
    status, told, said = ended(started(dict(os.environ), name))
    assert (status, told) == (2, "")
    assert said == f"conformance: {name}: no case is called so; --list names them\n"


def test_without_a_driver_one_line_says_so(tmp_path: Path) -> None:
    status, told, said = ended(started(os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}, "init"))
    assert (status, told) == (1, "")
    assert said.startswith("conformance: no driver to ask: libcuda.so.1")
    assert said.count("\n") == 1
