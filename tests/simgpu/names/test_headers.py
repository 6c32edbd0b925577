"""What both libraries and the tests' programs declare is as NVIDIA's headers declare it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from partage_simgpu.build import sources as simulation
from real_card.rows.conformance import SOURCES
from support.nvidia import CUDA_RUNTIME, nvml_header, unpacked

pytestmark = pytest.mark.slow

DRIVER: Final = Path(__file__).parents[3] / "isolation/driver"


def include() -> Path:
    return next(unpacked(CUDA_RUNTIME).rglob("cuda.h")).parent


def holds(folder: Path, headers: Sequence[Path | str], facts: Sequence[str]) -> None:
    """With these headers these facts are true."""
    source = folder / "facts.c"
    lines = ["#include <stddef.h>", *(f'#include "{header}"' for header in headers)]
    lines += [f'_Static_assert({fact}, "as in the headers");' for fact in facts]
    source.write_text("\n".join([*lines, ""]))
    done = subprocess.run(["cc", "-fsyntax-only", str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ---- The driver API --------------------------------------------------------------------------------------------------


SIZES: Final = {
    "CUlaunchAttribute": 72,
    "CUlaunchConfig": 56,
    "CUDA_LAUNCH_PARAMS": 56,
    "CUDA_KERNEL_NODE_PARAMS_v1": 56,
    "CUDA_KERNEL_NODE_PARAMS_v2": 72,
    "CUDA_HOST_NODE_PARAMS_v1": 16,
    "CUDA_MEMCPY3D": 200,
    "CUDA_MEMSET_NODE_PARAMS_v1": 40,
    "CUDA_MEM_ALLOC_NODE_PARAMS_v1": 120,
    "CUgraphNodeParams": 256,
    "CUgraphEdgeData": 8,
    "CUDA_GRAPH_INSTANTIATE_PARAMS": 32,
    "CUgraphExecUpdateResultInfo": 24,
    "CUctxCreateParams": 24,
    "CUuuid": 16,
}

PLACES: Final = (
    "CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT == 4",
    "CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN == 6",
    "CU_MEM_ALLOCATION_TYPE_MANAGED == 2",
    "offsetof(CUmemLocation, localized.deviceId) == 4 && sizeof(((CUmemLocation *)0)->localized.deviceId) == 1",
    "offsetof(CUmemLocation, localized.localityDomainId) == 5",
    "CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT == 149",
    "CU_MEMPOOL_ATTR_USED_MEM_CURRENT == 7",
)


def test_structures_and_places_are_those_of_the_header(tmp_path: Path) -> None:
    sizes = [f"sizeof({name}) == {size}" for name, size in SIZES.items()]
    holds(tmp_path, [include() / "cuda.h"], [*sizes, *PLACES])


def test_results_have_the_numbers_of_the_header() -> None:
    header = (include() / "cuda.h").read_text()
    declared = re.search(r"typedef enum cudaError_enum \{(.*?)\}", header, flags=re.DOTALL)
    assert declared is not None
    theirs = dict(re.findall(r"(CUDA_\w+)\s*=\s*(\d+)", declared[1]))
    listed = re.findall(r"^ERROR\((\w+), (\d+), ", (DRIVER / "cuda_errors.def").read_text(), flags=re.MULTILINE)
    assert dict(listed) == theirs


# ---- NVML ------------------------------------------------------------------------------------------------------------


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
    sizes = [f"sizeof(struct {ours}) == sizeof({theirs})" for ours, theirs in LAYOUTS.items()]
    places = [
        f"offsetof(struct {ours}, {field}) == offsetof({LAYOUTS[ours]}, {there})"
        for ours, fields in FIELDS.items()
        for field, there in fields.items()
    ]
    holds(tmp_path, [nvml_header(), DRIVER / "nvml_abi.h"], [*sizes, *places])


# ---- Calls of the conformance program --------------------------------------------------------------------------------


VARIANTS: Final = ((), ("-D__CUDA_API_VERSION_INTERNAL",), ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",))
HANDLES: Final = (
    "CUcontext|CUstream|CUevent|CUmodule|CUlibrary|CUfunction|CUgraph|CUgraphNode|CUgraphExec|CUarray|CUmemoryPool"
    "|CUdevResourceDesc|CUhostFn|CUstreamCallback|nvmlDevice(_t)?|nvmlEventSet(_t)?|nvmlGpuInstance(_t)?"
)
WORDS: Final = r"size_t|\w*u64|\w*uint64_t|unsigned long long|CUdeviceptr\w*|CUmemGenericAllocationHandle\w*"
WIDE: Final = re.compile(rf"\*|\[|\b({WORDS}|{HANDLES})\b")


def preprocessed(source: Path, *options: str) -> str:
    command = ["cc", "-E", "-P", *options, str(source)]
    return " ".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def width(parameter: str) -> int:
    """8: pointers, handles and words; 64: structs by value; 4: the rest."""
    if "*" not in parameter and "CUipcMemHandle" in parameter:
        return 64
    return 8 if WIDE.search(parameter) else 4


def declared(text: str) -> dict[str, list[int]]:
    """The widths of each function's parameters."""
    found = re.findall(r"\b((?:cu|nvml)[A-Z]\w+) ?\(([^()]*)\) ?;", text)
    return {
        name: [width(one) for one in parameters.split(",") if one.strip() not in ("", "void")]
        for name, parameters in found
    }


def test_calls_are_declared_as_the_headers_declare_them() -> None:
    ours = declared(preprocessed(SOURCES / "calls.h", f"-I{DRIVER.parent}", f"-I{simulation()}"))
    theirs = declared(preprocessed(nvml_header()) + preprocessed(nvml_header(), "-DNVML_NO_UNVERSIONED_FUNC_DEFS"))
    for variant in VARIANTS:
        theirs = declared(preprocessed(include() / "cuda.h", *variant)) | theirs
    assert len(ours) > 150
    assert {name: theirs.get(name) for name in ours} == ours
