"""Drivers from branch 615 on enforce memory limits of cgroups; older ones return that they cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.nvml.programs import INVALID_ARGUMENT, MIB, NOT_SUPPORTED, Program, program
from support.cgroups import control_group, entering
from support.simgpu import newer_driver

pytestmark = pytest.mark.slow

OK, OPERATING_SYSTEM = 0, 17
NO_LIMIT = 2**64 - 1
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


def test_a_limit_can_be_changed_and_taken_away(newer: SimulatedNode, group: Path) -> None:
    with program(newer) as nvml, program(newer, before=entering(group)) as inside:
        assert limit(nvml, group, 600 * MIB) == OK
        assert not takes(inside, 512)
        assert limit(nvml, group, 1200 * MIB) == OK
        assert takes(inside, 512)
        assert not takes(inside, 512)
        assert limit(nvml, group, NO_LIMIT) == OK
        assert takes(inside, 512)


def test_what_cannot_be_is_refused(newer: SimulatedNode, group: Path, tmp_path: Path) -> None:
    with program(newer) as nvml:
        assert limit(nvml, group / "absent", MIB) == OPERATING_SYSTEM
        assert limit(nvml, tmp_path, MIB) == OPERATING_SYSTEM
        assert limit(nvml, group, MIB, soft=2 * MIB) == INVALID_ARGUMENT
        assert limit(nvml, group, 2**60) == INVALID_ARGUMENT


def test_an_older_driver_says_that_it_cannot(nvml: Program, group: Path) -> None:
    assert limit(nvml, group, MIB) == NOT_SUPPORTED
