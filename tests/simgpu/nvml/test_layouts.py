"""The library's struct layouts are those of NVIDIA's header."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from support.nvidia import nvml_header

pytestmark = pytest.mark.slow

DRIVER = Path(__file__).parents[3] / "isolation/driver"
LAYOUTS = {
    "nvml_pci": "nvmlPciInfo_t",
    "nvml_memory": "nvmlMemory_t",
    "nvml_memory_v2": "nvmlMemory_v2_t",
    "nvml_memory_limits": "nvmlSetMemoryLimits_v1_t",
    "nvml_bar1": "nvmlBAR1Memory_t",
    "nvml_utilization": "nvmlUtilization_t",
    "nvml_process_v1": "nvmlProcessInfo_v1_t",
    "nvml_process_v2": "nvmlProcessInfo_v2_t",
    "nvml_process_detail": "nvmlProcessDetail_v1_t",
    "nvml_process_details": "nvmlProcessDetailList_v1_t",
    "nvml_process_use": "nvmlProcessUtilizationSample_t",
    "nvml_process_use_v1": "nvmlProcessUtilizationInfo_v1_t",
    "nvml_process_uses": "nvmlProcessesUtilizationInfo_v1_t",
    "nvml_sample": "nvmlSample_t",
    "nvml_field": "nvmlFieldValue_t",
    "nvml_event": "nvmlEventData_t",
    "nvml_attributes": "nvmlDeviceAttributes_t",
    "nvml_placement": "nvmlGpuInstancePlacement_t",
    "nvml_gpu_profile": "nvmlGpuInstanceProfileInfo_t",
    "nvml_gpu_profile_v2": "nvmlGpuInstanceProfileInfo_v2_t",
    "nvml_gpu_profile_v3": "nvmlGpuInstanceProfileInfo_v3_t",
    "nvml_gpu_instance_info": "nvmlGpuInstanceInfo_t",
    "nvml_compute_profile": "nvmlComputeInstanceProfileInfo_t",
    "nvml_compute_instance_info": "nvmlComputeInstanceInfo_t",
    "nvml_fabric": "nvmlGpuFabricInfo_t",
    "nvml_fabric_v3": "nvmlGpuFabricInfo_v3_t",
}
"""Layouts of all structs in abi.h; the header no longer has nvml_event_v1."""
FIELDS = {
    "nvml_pci": {"bus": "bus", "device_id": "pciDeviceId", "bus_id": "busId"},
    "nvml_memory": {"free": "free", "used": "used"},
    "nvml_memory_v2": {"total": "total", "reserved": "reserved", "free": "free", "used": "used"},
    "nvml_memory_limits": {"cgroup": "nameSpace", "soft": "softLimit", "hard": "hardLimit"},
    "nvml_process_v2": {"pid": "pid", "bytes": "usedGpuMemory", "compute_instance": "computeInstanceId"},
    "nvml_process_use_v1": {"wall_us": "timeStamp", "pid": "pid", "sm": "smUtil", "flow": "ofaUtil"},
    "nvml_process_uses": {"count": "processSamplesCount", "since_us": "lastSeenTimeStamp", "uses": "procUtilArray"},
    "nvml_field": {"scope": "scopeId", "type": "valueType", "result": "nvmlReturn", "value": "value"},
    "nvml_event": {"data": "eventData", "gpu_instance": "gpuInstanceId"},
    "nvml_attributes": {"gpu_slices": "gpuInstanceSliceCount", "memory_mib": "memorySizeMB"},
    "nvml_gpu_profile_v2": {"sms": "multiprocessorCount", "memory_mib": "memorySizeMB", "name": "name"},
    "nvml_gpu_profile_v3": {"slices": "sliceCount", "name": "name", "capabilities": "capabilities"},
    "nvml_fabric_v3": {"status": "status", "state": "state", "health": "healthMask", "summary": "healthSummary"},
}


def test_every_struct_is_laid_out_as_in_the_header(tmp_path: Path) -> None:
    declared = set(re.findall(r"^struct (nvml_\w+) \{", (DRIVER / "nvml_abi.h").read_text(), flags=re.MULTILINE))
    assert declared - {"nvml_event_v1"} == set(LAYOUTS)
    asserts = [
        f'_Static_assert(sizeof(struct {ours}) == sizeof({theirs}), "{ours}");' for ours, theirs in LAYOUTS.items()
    ]
    asserts += [
        f'_Static_assert(offsetof(struct {ours}, {field}) == offsetof({LAYOUTS[ours]}, {there}), "{ours}.{field}");'
        for ours, fields in FIELDS.items()
        for field, there in fields.items()
    ]
    source = tmp_path / "layouts.c"
    source.write_text("\n".join([f'#include "{nvml_header()}"', f'#include "{DRIVER}/nvml_abi.h"', *asserts, ""]))
    done = subprocess.run(["cc", "-fsyntax-only", str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
