"""The kernels for a real card are valid code: NVIDIA's own assembler accepts them, as the driver's would."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from real_card.ground import ROOT
from real_card.programs.driver import HEAD, SPIN, with_globals, with_locals
from support.nvidia import CUDA_COMPILER, unpacked

CARDS = ("sm_75", "sm_80", "sm_90", "sm_100")
LOCALS = 16384
LITERALS = re.compile(r'_?(?:image|ptx)\[\] =((?:\s*"[^"]*")+);')


def in_source(path: str) -> str:
    found = LITERALS.search((ROOT / path).read_text())
    assert found, path
    return "".join(re.findall(r'"([^"]*)"', found[1])).replace("\\n", "\n")


KERNELS: Mapping[str, str] = {
    "spin": HEAD + SPIN,
    "locals": HEAD + with_locals(LOCALS),
    "globals": HEAD + with_globals(64 << 20),
    "flood": in_source("tests/real_card/native/card.c"),
    "workloads": in_source("simgpu/native/common/spin.h"),
}


@pytest.fixture(scope="module")
def assembler() -> Path:
    (program,) = unpacked(CUDA_COMPILER).rglob("ptxas")
    program.chmod(0o755)
    return program


def assembled(assembler: Path, text: str, card: str, folder: Path) -> str:
    """The assembler's report on the code that it generated."""
    source = folder / "kernel.ptx"
    source.write_text(text)
    argv = [str(assembler), "-v", f"--gpu-name={card}", "-o", str(folder / "kernel.cubin"), str(source)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_is_code_for_every_card(assembler: Path, kernel: str, tmp_path: Path) -> None:
    for card in CARDS:
        assembled(assembler, KERNELS[kernel], card, tmp_path)


def test_local_memory_is_not_optimized_away(assembler: Path, tmp_path: Path) -> None:
    assert f"{LOCALS} bytes stack frame" in assembled(assembler, KERNELS["locals"], "sm_90", tmp_path)
