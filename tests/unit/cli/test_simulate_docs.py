"""The page about simulation matches the command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec

from partage_cli.simulate.command import command
from partage_cli.simulate.shown import as_json, as_table
from partage_cli.simulation import Point, ReplayResult, summarised
from partage_cli.simulation.results import Mean, MeanPoint, Summary
from partage_cli.simulation.synthetic import synthetic
from partage_cli.simulation.traces import NODE_COLUMNS, POD_COLUMNS

PAGE: Final = (Path(__file__).parents[3] / "docs/simulate.md").read_text()
WORKLOAD: Final = synthetic(1)
POINTS: Final = tuple(Point(arrived=arrived, allocated=1.0, fragments=2.0) for arrived in (100, 130))
SUMMARIES: Final = summarised([ReplayResult(policy="fgd", seed=1, points=POINTS, pods=3, unplaced=2, idle_cards=1)])


def names(kind: type[msgspec.Struct]) -> set[str]:
    return {each.encode_name for each in msgspec.structs.fields(kind)}


def test_every_option_is_on_the_page() -> None:
    options = {option for each in command.params for option in each.opts if option.startswith("--")}
    told = set(re.findall(r"--[a-z]+", PAGE))
    assert options - {"--output"} <= told
    assert "`-o json`" in PAGE


def test_every_column_of_a_trace_is_on_the_page() -> None:
    assert set(NODE_COLUMNS) | set(POD_COLUMNS) | {"gpu_spec"} <= set(re.findall(r"`(\w+)`", PAGE))


def test_the_page_has_the_header_of_the_table() -> None:
    header = as_table(WORKLOAD, SUMMARIES, None).splitlines()[2]
    assert re.sub(r" +", " ", header) in re.sub(r" +", " ", PAGE)


def test_the_page_has_the_shape_of_the_json() -> None:
    told = msgspec.json.decode(PAGE.partition("```json")[2].partition("```")[0])
    printed = msgspec.json.decode(as_json(WORKLOAD, SUMMARIES, None))
    assert set(told) == set(printed)
    assert set(told["workload"]) == set(printed["workload"])
    (policy,) = told["policies"]
    assert set(policy) == names(Summary)
    (point,) = policy["points"]
    assert (set(point), set(point["allocated"])) == (names(MeanPoint), names(Mean))
