"""The library has every name that NVIDIA's header declares, and cuGetProcAddress finds each form of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.cuda.programs import run
from support.nvidia import CUDA_RUNTIME, unpacked
from support.simgpu import built, simulated_names

pytestmark = pytest.mark.slow

DRIVER: Final = Path(__file__).parents[3] / "isolation/driver"
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


def include() -> Path:
    return next(unpacked(CUDA_RUNTIME).rglob("cuda.h")).parent


LIBRARIES: Final = {"libcuda.so": "cuda.def", "libnvidia-ml.so": "nvml.def"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_built_library_exports_every_name_that_the_driver_has(library: str) -> None:
    simulated, absent = simulated_names(library)
    table = (DRIVER / LIBRARIES[library]).read_text()
    listed = re.findall(r"^(?:NAME|ROUTE)\((?:.*, )?(\w+)\)$", table, flags=re.MULTILINE)
    assert simulated | absent == set(listed)
    assert min(len(simulated), len(absent)) > 20


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_library_needs_libc_alone_and_has_the_name_that_programs_ask_for(library: str) -> None:
    said = subprocess.check_output(["readelf", "-d", str(built() / library)], text=True)
    assert re.findall(r"NEEDED.*\[(.*)\]", said) == ["libc.so.6"]
    assert re.findall(r"SONAME.*\[(.*)\]", said) == [f"{library}.1"]


def test_structures_and_places_are_those_of_the_header(tmp_path: Path) -> None:
    source = tmp_path / "sizes.c"
    facts = [f"sizeof({name}) == {size}" for name, size in SIZES.items()] + list(PLACES)
    source.write_text("\n".join(["#include <stddef.h>", "#include <cuda.h>", *map(_asserted, facts), ""]))
    command = ["cc", "-fsyntax-only", f"-I{include()}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _asserted(fact: str) -> str:
    return f'_Static_assert({fact}, "as both libraries have it");'


def test_results_have_the_numbers_of_the_header() -> None:
    header = (include() / "cuda.h").read_text()
    declared = re.search(r"typedef enum cudaError_enum \{(.*?)\}", header, flags=re.DOTALL)
    assert declared is not None
    theirs = dict(re.findall(r"(CUDA_\w+)\s*=\s*(\d+)", declared[1]))
    listed = re.findall(r"^ERROR\((\w+), (\d+), ", (DRIVER / "cuda_errors.def").read_text(), flags=re.MULTILINE)
    assert dict(listed) == theirs


LOOK = """
def look(name, version, flags, form):
    address, status = ctypes.c_void_p(), [ctypes.byref(ctypes.c_int())] if form else []
    number = ask("cuGetProcAddress" + form, name.encode(), ctypes.byref(address), version, flags, *status)
    return [number, address.value]
def symbol(name): return ctypes.cast(getattr(cuda, name), ctypes.c_void_p).value
"""
FORMS: Final = [
    ("cuMemAlloc", 13000, 0, "cuMemAlloc_v2"),
    ("cuLaunchKernel", 7000, 1, "cuLaunchKernel"),
    ("cuMemCreate", 12000, 2, "cuMemCreate"),
    ("cuMemPrefetchAsync", 8000, 0, "cuMemPrefetchAsync"),
    ("cuMemPrefetchAsync", 12020, 2, "cuMemPrefetchAsync_v2_ptsz"),
    ("cuCtxCreate", 13000, 0, "cuCtxCreate_v4"),
    ("cuCtxSynchronize", 2000, 0, "cuCtxSynchronize"),
    ("cuCtxSynchronize", 13000, 0, "cuCtxSynchronize_v2"),
    ("cuStreamGetCaptureInfo", 11030, 2, "cuStreamGetCaptureInfo_v2_ptsz"),
    ("cuStreamGetCaptureInfo", 12030, 0, "cuStreamGetCaptureInfo_v3"),
    ("cuEventElapsedTime", 12080, 0, "cuEventElapsedTime_v2"),
]
"""Forms in addition to those of the conformance cases."""


def test_a_name_has_the_form_of_the_version_and_of_the_default_stream_that_is_asked_for(node: SimulatedNode) -> None:
    snippet = f"""
tell([[name, version, flags, form] for name, version, flags, wanted in {FORMS!r} for form in ("", "_v2")
      if look(name, version, flags, form) != [0, symbol(wanted)]])
"""
    assert run(node, LOOK + snippet) == []


def test_what_is_absent_says_so_and_export_tables_are_not_found(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); table = ctypes.c_void_p(7)
        tell([ask("cuGreenCtxGetId"), ask("cuCheckpointProcessGetRestoreThreadId", os.getpid(), None),
              ask("cuGetExportTable", ctypes.byref(table), bytes(16)), table.value])
        """,
    )
    assert answers == [801, 801, 500, None]
