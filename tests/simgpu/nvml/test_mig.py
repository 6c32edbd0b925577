"""MIG instances are separate devices, under their card."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.nvml.programs import MIB, NOT_FOUND, NOT_SUPPORTED, program

pytestmark = pytest.mark.slow

INSTANCES = "[nvmlDeviceGetMigDeviceHandleByIndex(card, i) for i in range(2)]"


def test_a_card_in_mig_mode_lists_its_instances(mig_node: SimulatedNode) -> None:
    with program(mig_node) as nvml:
        assert nvml.ask("nvmlDeviceGetMigMode(card)") == [1, 1]
        assert nvml.ask("nvmlDeviceGetCount()") == 1
        assert nvml.ask("nvmlDeviceGetMaxMigDeviceCount(card)") == 7
        names = nvml.ask(f"[nvmlDeviceGetName(one) for one in {INSTANCES}]")
        assert sorted(name.split()[-1] for name in names) == ["1g.10gb", "3g.40gb"]
        assert nvml.error("nvmlDeviceGetMigDeviceHandleByIndex(card, 2)") == NOT_FOUND
        assert nvml.ask(f"[nvmlDeviceGetIndex(one) for one in {INSTANCES}]") == [0, 1]


def test_an_instance_knows_its_card_and_its_numbers(mig_node: SimulatedNode) -> None:
    with program(mig_node) as nvml:
        nvml.ask(f"(both := {INSTANCES}) and None")
        assert nvml.ask("[nvmlDeviceIsMigDeviceHandle(one) for one in (card, *both)]") == [0, 1, 1]
        nvml.ask("(parents := [nvmlDeviceGetDeviceHandleFromMigDeviceHandle(one) for one in both]) and None")
        assert nvml.ask("[nvmlDeviceGetUUID(one) == nvmlDeviceGetUUID(card) for one in parents]") == [True, True]
        found = "nvmlDeviceGetUUID(nvmlDeviceGetHandleByUUID(nvmlDeviceGetUUID(both[1]))) == nvmlDeviceGetUUID(both[1])"
        assert nvml.ask(found) is True
        assert len(set(nvml.ask("[nvmlDeviceGetGpuInstanceId(one) for one in both]"))) == 2
        assert nvml.error("nvmlDeviceGetGpuInstanceId(card)") == NOT_SUPPORTED


def test_the_profile_of_an_instance_is_found_among_the_cards_profiles(mig_node: SimulatedNode) -> None:
    """NVIDIA's own tools find a resource's name this way."""
    with program(mig_node) as nvml:
        nvml.ask(f"(both := {INSTANCES}) and None")
        for number in (0, 1):
            nvml.ask(
                f"(instance := nvmlDeviceGetGpuInstanceById(card, nvmlDeviceGetGpuInstanceId(both[{number}]))) and None"
            )
            about = nvml.ask("nvmlGpuInstanceGetInfo(instance)")
            slices = nvml.ask(f"nvmlDeviceGetAttributes(both[{number}]).gpuInstanceSliceCount")
            matching = (
                "[one.sliceCount for one in [nvmlDeviceGetGpuInstanceProfileInfo(card, n) for n in (0, 1, 2, 3, 4, 7)]"
                f" if one.id == {about['profileId']}]"
            )
            assert nvml.ask(matching) == [slices]
            compute = nvml.ask("nvmlComputeInstanceGetInfo_v2(nvmlGpuInstanceGetComputeInstanceById(instance, 0))")
            assert compute["id"] == 0


def test_memory_and_processes_of_an_instance_are_its_own_and_count_for_the_card(mig_node: SimulatedNode) -> None:
    with program(mig_node) as nvml:
        nvml.ask(f"(both := {INSTANCES}) and use(1, {64 * MIB})")
        used = nvml.ask("[nvmlDeviceGetMemoryInfo(one, version=nvmlMemory_v2).used for one in (card, *both)]")
        assert used[0] == used[1] > 64 * MIB
        assert used[2] == 0
        mine = nvml.ask("nvmlDeviceGetComputeRunningProcesses(both[0])")
        assert mine == nvml.ask("nvmlDeviceGetComputeRunningProcesses(card)")
        assert [(one["pid"], one["gpuInstanceId"]) for one in mine] == [
            (nvml.pid, nvml.ask("nvmlDeviceGetGpuInstanceId(both[0])"))
        ]
        assert nvml.ask("nvmlDeviceGetComputeRunningProcesses(both[1])") == []


def test_what_is_a_whole_cards_is_not_asked_of_an_instance(mig_node: SimulatedNode) -> None:
    with program(mig_node) as nvml:
        nvml.ask("(one := nvmlDeviceGetMigDeviceHandleByIndex(card, 0)) and None")
        for name in ("PowerUsage", "PciInfo", "MinorNumber", "UtilizationRates", "EccMode"):
            assert nvml.error(f"nvmlDeviceGet{name}(one)") == NOT_SUPPORTED
        assert nvml.error("nvmlDeviceGetUtilizationRates(card)") == NOT_SUPPORTED
