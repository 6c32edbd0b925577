"""nvmlInit and nvmlShutdown, forks and threads, and a driver that stops and restarts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.nvml.programs import (
    DRIVER_NOT_LOADED,
    GPU_IS_LOST,
    UNKNOWN,
    Program,
    bare_program,
    environment,
    program,
)
from support.procfs import descriptors

pytestmark = pytest.mark.slow


def test_shutdown_leaves_no_file_open_and_init_begins_anew(node: SimulatedNode) -> None:
    with bare_program(node) as nvml:
        nvml.ask("0")  # it has loaded all its own modules
        before = descriptors(nvml.pid)
        for _ in range(20):
            nvml.ask("nvmlInit()")
            assert descriptors(nvml.pid) > before
            nvml.ask("nvmlShutdown()")
            assert descriptors(nvml.pid) == before


def test_handles_outlive_shutdown_and_init(nvml: Program) -> None:
    nvml.ask("nvmlShutdown()")
    nvml.ask("nvmlInit()")
    assert nvml.ask("nvmlDeviceGetIndex(card)") == 0


def test_without_a_driver_init_says_so(node: SimulatedNode) -> None:
    node.stop()
    with bare_program(node) as nvml:
        assert nvml.error("nvmlInit()") == DRIVER_NOT_LOADED
        node.start()
        assert nvml.error("nvmlInit()") == 0


@pytest.mark.parametrize("how", ["kill", "restart", "reload"])
def test_a_driver_that_went_takes_its_handles_along_and_a_fresh_init_works(node: SimulatedNode, how: str) -> None:
    with program(node) as nvml:
        if how == "reload":
            node.control("reload")
        else:
            getattr(node, how)()
        assert nvml.error("nvmlDeviceGetName(card)") in {UNKNOWN, GPU_IS_LOST}
        assert nvml.error("nvmlSystemGetDriverVersion()") == UNKNOWN
        if how == "kill":
            node.start()
        nvml.ask("nvmlShutdown()")
        nvml.ask("nvmlInit()")
        assert nvml.error("nvmlDeviceGetName(card)") == GPU_IS_LOST
        assert nvml.error("nvmlDeviceGetName(nvmlDeviceGetHandleByIndex(0))") == 0


def test_a_child_of_a_fork_sees_what_its_parent_sees(nvml: Program, tmp_path: Path) -> None:
    said = tmp_path / "said"
    line = (
        "(pid := os.fork()) or (open(%r, 'w').write(__import__('json').dumps("
        "[nvmlDeviceGetCount(), nvmlDeviceGetIndex(card), nvmlDeviceGetMemoryInfo(card).total, "
        "nvmlDeviceGetComputeRunningProcesses(card)]))"
        ", os._exit(0))"
    )
    nvml.ask(f"[{line % str(said)}, os.waitpid(pid, 0)]")
    count, index, total, processes = json.loads(said.read_text())
    assert (count, index, processes) == (3, 0, [])
    assert total == nvml.ask("nvmlDeviceGetMemoryInfo(card).total")
    assert nvml.ask("nvmlDeviceGetComputeRunningProcesses(card)") == []  # the parent's connection is unaffected


def test_threads_that_init_read_and_shut_down_do_not_disturb_each_other(node: SimulatedNode) -> None:
    body = """
import sys, threading
from pynvml import *

def work():
    for _ in range(300):
        nvmlInit()
        card = nvmlDeviceGetHandleByIndex(0)
        events = nvmlEventSetCreate()
        nvmlDeviceRegisterEvents(card, nvmlEventTypeXidCriticalError, events)
        assert nvmlDeviceGetMemoryInfo(card).total > 0 and nvmlDeviceGetComputeRunningProcesses(card) == []
        nvmlEventSetFree(events)
        nvmlShutdown()
    done.append(True)

done = []
nvmlInit()
threads = [threading.Thread(target=work) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
nvmlShutdown()
sys.exit(len(done) != 8)
"""
    command = [sys.executable, "-c", body]
    done = subprocess.run(command, env=environment(node), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_errno_is_left_alone(nvml: Program) -> None:
    nvml.ask("(library := ctypes.CDLL('libnvidia-ml.so.1', use_errno=True)) and None")
    said = nvml.ask("[ctypes.set_errno(77), library.nvmlDeviceGetName(None, None, 0), ctypes.get_errno()]")
    assert said[2] == 77
    said = nvml.ask("[library.nvmlSystemGetProcessName(0, ctypes.create_string_buffer(9), 9), ctypes.get_errno()]")
    assert said == [6, 77]
