"""NVIDIA's own runtime library, and its Python module for NVML, find what they expect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Final

import pytest

from isolation.library.stage import VERSION, Stage
from rig.patience import patience_s
from support.nvidia import CUDA_RUNTIME, unpacked

pytestmark = pytest.mark.slow

CUDART: Final = """
import ctypes, json, sys
runtime, number = ctypes.CDLL(sys.argv[1]), ctypes.c_int(-1)
said = {}
for name in ("cudaDriverGetVersion", "cudaGetDeviceCount"):
    said[name] = [getattr(runtime, name)(ctypes.byref(number)), number.value]
print(json.dumps(said))
"""
PYNVML: Final = """
import json, pynvml
try:
    pynvml.nvmlInit()
except pynvml.NVMLError as error:
    print(json.dumps([error.value, str(error)]))
"""


def told(program: str, environment: dict[str, str], *words: str) -> object:
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=patience_s(),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def cudart() -> str:
    return str(next(unpacked(CUDA_RUNTIME).rglob("libcudart.so.*")))


def test_without_a_driver_the_runtime_says_what_it_says_without_us(stage: Stage, cudart: str) -> None:
    with_us = told(CUDART, stage.environment(driver=False), cudart)
    assert with_us == told(CUDART, {"PATH": os.environ["PATH"]}, cudart)
    assert with_us == {"cudaDriverGetVersion": [0, 0], "cudaGetDeviceCount": [35, 0]}


def test_with_a_driver_the_runtime_finds_it_through_us(stage: Stage, cudart: str) -> None:
    said = told(CUDART, stage.environment(), cudart)
    assert isinstance(said, dict)
    assert said["cudaDriverGetVersion"] == [0, VERSION]


def test_without_a_driver_nvmls_module_says_what_it_says_without_us(stage: Stage) -> None:
    with_us = told(PYNVML, stage.environment(driver=False))
    assert with_us == told(PYNVML, {"PATH": os.environ["PATH"]})
    assert with_us == [12, "NVML Shared Library Not Found"]
