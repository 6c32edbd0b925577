"""Ordinary software chooses the same driver functions with our library as without, and hooked where required."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from isolation.real_drivers.place import Place, hooks, symbols
from partage_isolation.library.objects import CUDA
from support.nvidia import (
    CUDA_BINDINGS,
    CUDA_PATHFINDER,
    CUDA_RUNTIME,
    CUDA_RUNTIME_12,
    NUMBA,
    NUMBA_CUDA,
    Package,
    unpacked,
)

pytestmark = pytest.mark.slow

FEWEST_HOOKED: Final = 20
PER_THREAD: Final = "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"


class Functions:
    """Names of functions by their places in one of the two libraries."""

    def __init__(self, place: Place) -> None:
        self._names = {
            str(path.resolve()): {at: name for name, at in symbols(path).items()}
            for path in (place.folder / CUDA, place.installed.folder / CUDA)
        }
        self._ours = str((place.installed.folder / CUDA).resolve())

    def of(self, found: tuple[str, int]) -> str:
        path, at = found
        return self._names[path].get(at, hex(at))

    def is_ours(self, found: tuple[str, int]) -> bool:
        return found[0] == self._ours


@pytest.mark.parametrize("runtime", [CUDA_RUNTIME_12, CUDA_RUNTIME])
def test_a_runtime_answers_as_without_us_and_knows_no_hooked_function_of_the_drivers(
    place: Place, runtime: Package
) -> None:
    library = next(unpacked(runtime).rglob("libcudart.so.*"))
    functions = Functions(place)
    bare, told = (place.told("runtime.py", library, ours=ours) for ours in (False, True))
    assert told["said"] == bare["said"]
    before, after = ({functions.of(each) for each in which["knows"]} & hooks() for which in (bare, told))
    assert len(before) > FEWEST_HOOKED
    assert after == before
    assert [each for each in told["knows"] if functions.of(each) in hooks() and not functions.is_ours(each)] == []


@pytest.mark.parametrize("per_thread", ["0", "1"])
def test_cuda_python_chooses_the_same_functions(place: Place, per_thread: str) -> None:
    folders = [unpacked(package) for package in (CUDA_BINDINGS, CUDA_PATHFINDER)]
    functions = Functions(place)
    bare, told = (place.told("bindings.py", *folders, ours=ours, **{PER_THREAD: per_thread}) for ours in (False, True))
    chosen = [{name: each and functions.of(each) for name, each in which["chosen"].items()} for which in (bare, told)]
    assert chosen[0] == chosen[1]
    assert told["refusal"] == bare["refusal"]
    hooked = [each for each in told["chosen"].values() if each and functions.of(each) in hooks()]
    assert len(hooked) > FEWEST_HOOKED or bare["refusal"] == "Failed to get cuGetProcAddress_v2"
    assert all(map(functions.is_ours, hooked))


@pytest.mark.parametrize("package", [NUMBA, NUMBA_CUDA])
def test_numba_chooses_the_same_functions(place: Place, package: Package) -> None:
    folder: Path = next(unpacked(package).rglob("cudadrv/drvapi.py")).parent
    bare, told = (place.told("choose.py", folder, ours=ours) for ours in (False, True))
    assert told == bare
    assert bare["cuMemAlloc False"] == "cuMemAlloc_v2"
    assert bare["cuEventElapsedTime False"] == "cuEventElapsedTime"


def test_without_a_card_programs_are_told_what_they_are_told_without_us(place: Place) -> None:
    bare, told = (place.told("start.py", ours=ours) for ours in (False, True))
    assert told == bare
    assert bare["cuInit"] != 0
    assert bare["nvmlInit_v2"] != 0
