"""Memory and processes are those of the kernel driver."""

from __future__ import annotations

import shutil
import sys

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.daemon.wire import MANAGED
from simgpu.nvml.programs import INVALID_ARGUMENT, MIB, NOT_FOUND, Program, program

pytestmark = pytest.mark.slow


def use(one: Program, card: int, *amounts: int) -> None:
    one.ask(f"use{(card, *amounts)}")


def test_older_versions_of_the_list_have_their_own_shapes(nvml: Program) -> None:
    """The first version has no fields for MIG's numbers: entries are closer together."""
    use(nvml, 0)
    nvml.ask("(words := (ctypes.c_uint32 * 12)(*[0xabababab] * 12)) and None")
    assert nvml.ask("library.nvmlDeviceGetComputeRunningProcesses(card, byref(c_uint(1)), words)") == 0
    first = nvml.ask("list(words)")
    assert first[0] == nvml.pid
    assert first[4:] == [0xABABABAB] * 8
    assert nvml.ask("library.nvmlDeviceGetComputeRunningProcesses_v2(card, byref(c_uint(1)), words)") == 0
    second = nvml.ask("list(words)")
    assert second[4:6] == [0xFFFFFFFF, 0xFFFFFFFF]
    assert second[6:] == [0xABABABAB] * 6


def test_all_kinds_of_processes_come_in_one_list(nvml: Program) -> None:
    use(nvml, 0, 2 * MIB)
    listing = "nvmlDeviceGetRunningProcessDetailList(card, nvmlProcessDetailList_v1, {mode})"
    for mode in ("NVML_PROCESS_MODE_ALL", "NVML_PROCESS_MODE_COMPUTE"):
        assert [one["pid"] for one in nvml.ask(listing.format(mode=mode))] == [nvml.pid]
    assert nvml.ask(listing.format(mode="NVML_PROCESS_MODE_MPS")) == []
    assert nvml.error(listing.format(mode="4")) == INVALID_ARGUMENT


def test_managed_memory_is_used_and_no_processs(node: SimulatedNode, nvml: Program) -> None:
    """As on an H200 with driver 580."""
    mine = "[one.usedGpuMemory for one in nvmlDeviceGetComputeRunningProcesses(card)]"
    context = nvml.ask("(use(0), nvmlDeviceGetMemoryInfo(card).used)")[1]
    shown = nvml.ask(mine)
    assert nvml.ask(f"use(0, {64 * MIB}, kind={MANAGED})") == [0, 0]
    assert nvml.ask(mine) == shown
    assert nvml.ask("nvmlDeviceGetMemoryInfo(card).used") == context + 64 * MIB


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare of util-linux")
def test_what_another_pid_namespace_hides_is_not_listed(node: SimulatedNode, nvml: Program) -> None:
    use(nvml, 0)
    with program(node, before=("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")) as inside:
        assert inside.ask("nvmlDeviceGetComputeRunningProcesses(card)") == []
        use(inside, 0)
        own = inside.ask("os.getpid()")
        assert [one["pid"] for one in inside.ask("nvmlDeviceGetComputeRunningProcesses(card)")] == [own]
        seen = [one["pid"] for one in nvml.ask("nvmlDeviceGetComputeRunningProcesses(card)")]
        assert nvml.pid in seen
        assert len(seen) == 2
        assert own not in seen


def test_a_process_is_named_by_its_program(nvml: Program) -> None:
    assert nvml.ask("nvmlSystemGetProcessName(os.getpid())") == sys.executable
    assert nvml.error("nvmlSystemGetProcessName(2**22 + 1)") == NOT_FOUND


def test_memory_errors_are_counted(node: SimulatedNode, nvml: Program) -> None:
    node.control("ecc 0 corrected 3")
    node.control("ecc 0 uncorrected 2")
    totals = "[nvmlDeviceGetTotalEccErrors(card, kind, counter) for kind in (0, 1) for counter in (0, 1)]"
    assert nvml.ask(totals) == [3, 3, 2, 2]
    assert nvml.ask("nvmlDeviceGetTotalEccErrors(nvmlDeviceGetHandleByIndex(1), 0, 0)") == 0
