"""cuGetProcAddress finds a hook for every name that has one, in every version and for both default streams."""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from isolation.library.stage import Stage
from partage_isolation.library.objects import sources
from partage_simgpu.node import SimulatedNode
from support.simgpu import simulated_names, simulated_node

pytestmark = pytest.mark.slow

DRIVER_VERSION: Final = 13000
LEGACY, PER_THREAD = 1, 2


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Generator[SimulatedNode]:
    with simulated_node(tmp_path_factory.mktemp("node")) as node:
        yield node


@cache
def hooks() -> set[str]:
    """Hooks of names that the simulated driver has. Its other names share one function, which has no hook."""
    hooked = re.findall(r"^(?:GATED_)?HOOK\((\w+)\)", (sources() / "hooks/hooks.def").read_text(), flags=re.MULTILINE)
    simulated, _ = simulated_names("libcuda.so")
    return simulated.intersection(hooked)


def questions() -> list[str]:
    """Each form that the driver has, requested at its own version and at the newest, for each default stream."""
    text = (sources().with_name("driver") / "cuda.def").read_text()
    routes = [
        (name, int(version), per_thread == "1", symbol)
        for name, version, per_thread, symbol in re.findall(
            r"^ROUTE\((\w+), (\d+), ([01]), (\w+)\)", text, re.MULTILINE
        )
        if int(version) <= DRIVER_VERSION
    ]
    asked = {(name, version) for name, version, _, _ in routes} | {(name, DRIVER_VERSION) for name, *_ in routes}
    lines: list[str] = []
    for name, version in sorted(asked):
        for flags in (0, LEGACY, PER_THREAD):
            known = [way for way in routes if way[0] == name and way[1] <= version]
            fitting = [way for way in known if way[2] and flags == PER_THREAD] or [way for way in known if not way[2]]
            if fitting:
                symbol = max(fitting, key=lambda way: way[1])[3]
                kind = "hooked" if symbol in hooks() else "other"
                lines.append(f"{name} {version} {flags} {symbol} {kind}")
    return lines


def test_every_form_of_every_hooked_name_is_ours_and_every_other_is_the_drivers(
    stage: Stage, node: SimulatedNode
) -> None:
    lines = questions()
    path = node.environment["LD_LIBRARY_PATH"]
    assert len(lines) > 1000
    assert stage.lines("routes", path, asked="\n".join(lines), LD_LIBRARY_PATH=path) == [str(2 * len(lines))]


def test_the_first_question_of_a_runtime_has_an_empty_name_and_is_the_drivers(stage: Stage) -> None:
    assert stage.lines("inner")[2] == "nothing"


def test_hooks_are_found_by_name_too(stage: Stage) -> None:
    assert Path(stage.lines("opens", "libcuda.so.1")[0].split()[1]) == stage.place / "lib/libcuda.so.1"
