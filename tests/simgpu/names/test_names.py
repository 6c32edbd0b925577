"""The library has every name that NVIDIA's header declares, and cuGetProcAddress finds each form of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from simgpu.cuda.programs import Programs
from support.simgpu import built, simulated_names

pytestmark = pytest.mark.slow

DRIVER: Final = Path(__file__).parents[3] / "isolation/driver"
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


def test_a_name_has_the_form_of_the_version_and_of_the_default_stream_that_is_asked_for(programs: Programs) -> None:
    snippet = f"""
tell([[name, version, flags, form] for name, version, flags, wanted in {FORMS!r} for form in ("", "_v2")
      if look(name, version, flags, form) != [0, symbol(wanted)]])
"""
    assert programs.run(LOOK + snippet) == []


def test_what_is_absent_says_so_and_export_tables_are_not_found(programs: Programs) -> None:
    answers = programs.run("""
        begin(); table = ctypes.c_void_p(7)
        tell([ask("cuGreenCtxGetId"), ask("cuCheckpointProcessGetRestoreThreadId", os.getpid(), None),
              ask("cuGetExportTable", ctypes.byref(table), bytes(16)), table.value])
    """)
    assert answers == [801, 801, 500, None]
