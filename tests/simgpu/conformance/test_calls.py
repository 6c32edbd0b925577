"""The functions that cases call are declared as in NVIDIA's headers: as many parameters, each as wide."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from partage_simgpu.build import sources as simulation
from real_card.rows.conformance import SOURCES
from simgpu.names.test_names import DRIVER, include
from support.nvidia import nvml_header

pytestmark = pytest.mark.slow

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
