"""Drivers from branch 615 on enforce memory limits of cgroups; older ones return that they cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.nvml.programs import INVALID_ARGUMENT, MIB, Program, program
from support.cgroups import control_group, entering
from support.simgpu import newer_driver

pytestmark = pytest.mark.slow

OK, OPERATING_SYSTEM = 0, 17
STRUCT = """
(Limits := type("Limits", (ctypes.Structure,), {"_fields_": [
    ("group", ctypes.c_char_p), ("soft", ctypes.c_ulonglong), ("hard", ctypes.c_ulonglong)]})) and None
"""


@pytest.fixture
def newer(node: SimulatedNode) -> SimulatedNode:
    newer_driver(node)
    return node


@pytest.fixture
def group() -> Iterator[Path]:
    with control_group() as group:
        yield group


def limit(nvml: Program, group: Path, hard: int, *, soft: int = 0) -> int:
    nvml.ask(STRUCT.replace("\n", ""))
    words = f"Limits({str(group).encode()!r}, {soft}, {hard})"
    answer: int = nvml.ask(f"library.nvmlDeviceSetMemoryLimits_v1(card, byref({words}))")
    return answer


def takes(one: Program, mib: int) -> bool:
    """Whether the first card provided a context of 516 MiB and then this much."""
    return set(one.ask(f"use(0, {mib * MIB})")) == {OK}


def test_a_group_gets_no_more_than_its_limit_and_others_as_much_as_there_is(newer: SimulatedNode, group: Path) -> None:
    with program(newer) as nvml:
        assert limit(nvml, group, 2048 * MIB) == OK
        with program(newer, before=entering(group)) as one, program(newer, before=entering(group)) as other:
            assert takes(one, 512)
            assert not takes(other, 512)
            assert takes(other, 256)
        assert takes(nvml, 4096)


def test_what_cannot_be_is_refused(newer: SimulatedNode, group: Path, tmp_path: Path) -> None:
    with program(newer) as nvml:
        assert limit(nvml, group / "absent", MIB) == OPERATING_SYSTEM
        assert limit(nvml, tmp_path, MIB) == OPERATING_SYSTEM
        assert limit(nvml, group, MIB, soft=2 * MIB) == INVALID_ARGUMENT
        assert limit(nvml, group, 2**60) == INVALID_ARGUMENT
