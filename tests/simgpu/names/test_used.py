"""No function is simulated without a user: each simulated name has a user here, or in a listed program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from simgpu.nvml.test_pynvml import FOR_ALL_CARDS, FOR_INSTANCES
from support.simgpu import simulated_names

pytestmark = pytest.mark.slow

CHECKOUT: Final = Path(__file__).parents[3]
USERS: Final = (
    "isolation/preload",
    "isolation/partage_isolation",
    "plugins",
    "simgpu/native/workloads",
    "simgpu/partage_simgpu",
    "tests",
)
OWN: Final = CHECKOUT / "tests/simgpu"
"""The simulation's own tests: a function that only they use is not needed."""
FORM: Final = re.compile(r"(_v\d+)?(_pt[sd][sz])?$")
OTHERS: Final = {
    "cuGetExportTable",  # libcudart calls it when it starts
    "cuMemAllocHost",  # pinned memory of frameworks, which is not limited yet
    "cuMemPoolExportToShareableHandle",  # otherwise its counterpart's argument would be unobtainable
}
NVIDIAS_PROGRAMS: Final = {
    "nvmlComputeInstanceGetInfo",
    "nvmlDeviceGetArchitecture",
    "nvmlDeviceGetBrand",
    "nvmlDeviceGetGpuFabricInfo",
    "nvmlDeviceGetGpuFabricInfoV",
    "nvmlDeviceGetGpuInstanceProfileInfo",
    "nvmlDeviceGetGpuInstanceProfileInfoV",
    "nvmlGpuInstanceGetComputeInstanceById",
    "nvmlGpuInstanceGetComputeInstanceProfileInfo",
    "nvmlGpuInstanceGetInfo",
}
"""Called by the device plugin 0.18 or the container toolkit 1.18, in addition to the other calls here."""
FACTS_OF_CARDS: Final = {
    "nvmlDeviceGetEccMode",
    "nvmlDeviceGetMaxPcieLinkGeneration",
    "nvmlDeviceGetMaxPcieLinkWidth",
    "nvmlDeviceGetTotalEccErrors",
}
"""Set by `partage simgpu inject` and profiles, and otherwise invisible to programs."""


def family(name: str) -> str:
    """A name without its version and the suffix of a default stream."""
    return FORM.sub("", name)


def words(prefix: str) -> Iterator[str]:
    name = re.compile(rf"\b{prefix}[A-Z]\w+")
    for folder in USERS:
        for file in (CHECKOUT / folder).rglob("*"):
            if file.suffix in {".c", ".h", ".def", ".py"} and OWN not in file.parents:
                yield from name.findall(file.read_text())


@pytest.mark.parametrize(
    ("library", "prefix", "others"),
    [
        ("libcuda.so", "cu", OTHERS),
        ("libnvidia-ml.so", "nvml", {*NVIDIAS_PROGRAMS, *FACTS_OF_CARDS, *FOR_ALL_CARDS, *FOR_INSTANCES}),
    ],
)
def test_every_simulated_function_is_used(library: str, prefix: str, others: set[str]) -> None:
    simulated, _ = simulated_names(library)
    used = {family(name) for name in words(prefix)} | others
    assert {name for name in simulated if family(name) not in used} == set()
