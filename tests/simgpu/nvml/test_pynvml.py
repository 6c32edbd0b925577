"""All of pynvml's public API works on every kind of card, with a guard page behind every output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from partage_simgpu.profiles import profile_names
from rig.patience import patience_s
from simgpu.nvml.programs import INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, TIMEOUT, VERSION_MISMATCH, environment
from support.simgpu import Card, card, simulated_node

pytestmark = pytest.mark.slow

HONEST = {NOT_SUPPORTED, INVALID_ARGUMENT, NOT_FOUND, TIMEOUT, VERSION_MISMATCH}
"""Valid errors for arguments that are made up from their names."""
WRONGLY_ASKED = {
    "nvmlDeviceGetConfComputeGpuAttestationReport",
    "nvmlDeviceSetHostname_v1",
    "nvmlDeviceSetNvLinkDeviceLowPowerThreshold",
    "nvmlDeviceSetRusdSettings_v1",
    "nvmlDeviceSetVgpuHeterogeneousMode",
    "nvmlGpuInstanceGetVgpuTypeCreatablePlacements",
    "nvmlGpuInstanceSetVgpuHeterogeneousMode",
}
"""Pynvml itself refuses arguments made up from their names, before it calls NVML, which has none of these."""
FOR_ALL_CARDS = {
    "nvmlDeviceGetArchitecture", "nvmlDeviceGetBAR1MemoryInfo", "nvmlDeviceGetBrand", "nvmlDeviceGetClockInfo",
    "nvmlDeviceGetComputeMode", "nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetCpuAffinity",
    "nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetCurrPcieLinkWidth",
    "nvmlDeviceGetDecoderUtilization", "nvmlDeviceGetEncoderUtilization", "nvmlDeviceGetEnforcedPowerLimit",
    "nvmlDeviceGetFieldValues", "nvmlDeviceGetGraphicsRunningProcesses", "nvmlDeviceGetHandleByUUID",
    "nvmlDeviceGetIndex", "nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMaxClockInfo",
    "nvmlDeviceGetMemoryAffinity", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMinorNumber", "nvmlDeviceGetName",
    "nvmlDeviceGetNumFans", "nvmlDeviceGetPciInfo", "nvmlDeviceGetPerformanceState", "nvmlDeviceGetPersistenceMode",
    "nvmlDeviceGetPowerManagementLimit", "nvmlDeviceGetPowerManagementLimitConstraints", "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetSupportedClocksEventReasons", "nvmlDeviceGetSupportedEventTypes",
    "nvmlDeviceGetSupportedMemoryClocks", "nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureThreshold",
    "nvmlDeviceGetTopologyCommonAncestor", "nvmlDeviceGetTopologyNearestGpus", "nvmlDeviceGetTotalEnergyConsumption",
    "nvmlDeviceGetUUID", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetVbiosVersion",
    "nvmlDeviceGetVirtualizationMode", "nvmlDeviceRegisterEvents", "nvmlEventSetFree", "nvmlSystemGetDriverVersion",
}  # fmt: skip
"""Monitors rely on these."""
FOR_INSTANCES = {
    "nvmlDeviceGetAttributes", "nvmlDeviceGetComputeInstanceId", "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", "nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceIsMigDeviceHandle",
}  # fmt: skip


def called_on(folder: Path, *cards: str | Card) -> dict[str, dict[str, Any]]:
    """The result of each function, for each card's UUID."""
    with simulated_node(folder, cards=cards) as node:
        command = [sys.executable, str(Path(__file__).with_name("guarded.py"))]
        done = subprocess.run(
            command, env=environment(node), capture_output=True, text=True, timeout=patience_s(300), check=False
        )
        assert done.returncode == 0, f"ended with {done.returncode} in {done.stderr.split()[-20:]}"
        found: dict[str, dict[str, Any]] = json.loads(done.stdout)
        return found


def answered_well(said: dict[str, Any], needed: set[str]) -> None:
    assert {name for name, (kind, _) in said.items() if kind == "error"} == WRONGLY_ASKED
    dishonest = {name: error for name, (kind, error) in said.items() if kind == "nvml" and error not in HONEST}
    assert not dishonest
    assert needed <= {name for name, (kind, _) in said.items() if kind == "ok"}


@pytest.mark.parametrize("profile", profile_names())
def test_every_function_is_answered_for_every_profile(tmp_path: Path, profile: str) -> None:
    for said in called_on(tmp_path, profile, profile).values():
        assert len(said) > 400
        answered_well(said, FOR_ALL_CARDS)


def test_every_function_is_answered_for_cards_in_mig_mode_and_for_their_instances(tmp_path: Path) -> None:
    found = called_on(tmp_path, card("h100", mig=("1g.10gb", "3g.40gb")))
    quiet = {"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetDecoderUtilization", "nvmlDeviceGetEncoderUtilization"}
    assert len(found) == 3
    for uuid, said in found.items():
        answered_well(said, FOR_INSTANCES if uuid.startswith("MIG-") else FOR_ALL_CARDS - quiet)
