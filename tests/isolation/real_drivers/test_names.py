"""Programs find exactly the names that the node's driver has: they choose features by existing names."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from isolation.real_drivers.place import LIBRARIES, Place, names, told
from partage_isolation.library.objects import CUDA, NVML, built, sources

pytestmark = pytest.mark.slow

VERSIONS: Final = ("GLIBC_2.2.5", "libcuda.so.1")
"""For dlvsym. The driver's libraries have no versions."""
LEAST_SPARES: Final = 200


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_way_to_look_a_name_up_finds_what_it_finds_without_us(place: Place, library: str) -> None:
    asked = sorted(place.exports[library] | names(library))
    bare = place.told("find.py", library, *VERSIONS, ours=False, asked=asked)
    assert set(bare["dlsym"]) == place.exports[library]
    assert place.told("find.py", library, *VERSIONS, asked=asked) == bare


def test_a_program_linked_with_the_driver_finds_what_it_finds_without_us(place: Place, tmp_path: Path) -> None:
    program = tmp_path / "linked"
    source = Path(__file__).parent / "programs/linked.c"
    options = [f"-I{sources().parent}", '-DNAMES="driver/cuda.def"', "-Wl,--no-as-needed,-z,dynamic-undefined-weak"]
    subprocess.run(["cc", "-o", program, source, *options, f"-L{built()}", "-l:libcuda.so.1"], check=True)
    bare = told([program], place.environment(ours=False))
    assert set(bare) == place.exports[CUDA] & names(CUDA)
    assert told([program], place.environment(ours=True)) == bare


def test_the_installer_gives_spares_what_only_the_driver_has_and_has_many_left(place: Place) -> None:
    lacking = {library: place.exports[library] - names(library) for library in LIBRARIES}
    assert set(place.installed.added) == lacking[CUDA] | lacking[NVML]
    assert place.installed.left_out == ()
    assert all(len(each) < 256 - LEAST_SPARES for each in lacking.values())


def test_functions_of_debuggers_are_the_drivers_alone(place: Place) -> None:
    asked = ["cudbgGetAPI", "cudbgReportDriverApiError"]
    assert place.told("find.py", CUDA, ours=False, asked=asked)["dlsym"] == asked
    assert place.told("find.py", CUDA, asked=asked)["dlsym"] == []
