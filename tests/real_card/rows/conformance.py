"""The areas of the conformance program: a driver's answers beside recorded ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Final

from real_card.comparison import Comparison, compare, read_facts, read_listed
from real_card.ground import ROOT
from real_card.row import Facts, Judgement, Row, Runs
from real_card.rows.words import MIB, listed

SOURCES: Final = ROOT / "tests/real_card/conformance"
PREFIX: Final = "conformance"
WAITS: Final = {"capture": 3, "contexts": 3, "full": 10, "nvml_use": 8, "pools": 3, "streams": 8, "waiting": 20}
"""Seconds of areas that wait for kernels, or fill the card."""
MANAGED: Final = {"host": 8 * MIB, "sharing": MIB}
AREAS: Final = (
    *("pools", "virtual", "sharing", "host", "memory", "full", "arrays", "graphs", "capture", "waiting", "streams"),
    *(
        "events",
        "callbacks",
        "contexts",
        "functions",
        "fork",
        "init",
        "cards",
        "errors",
        "nvml_processes",
        "nvml_memory",
    ),
    *("nvml_use", "nvml_life", "nvml_handles", "nvml_events", "nvml_mig", "nvml_kinds"),
)


@cache
def _records() -> Sequence[tuple[str, Facts]]:
    """Known facts about drivers, by source."""
    paths = sorted((SOURCES / "expected").glob("*.txt"))
    return [(path.stem, read_facts(path.read_text(), path.name)) for path in paths]


def _compared(facts: Facts, recorded: Facts) -> Comparison:
    listing = read_listed((SOURCES / "differences.toml").read_text(), "differences.toml")
    return compare(facts, recorded, listing)


def _judge(area: str, facts: Facts) -> Judgement:
    """Documented or earlier measured facts are expected; those of the simulation alone are only compared."""
    if not any(fact.startswith(f"{area}.") for fact in facts):
        raise ValueError(f"no fact of {area}")
    differ = {
        source: [one.fact.partition(".")[2] for one in _compared(facts, recorded).differences if one.reason is None]
        for source, recorded in _records()
    }
    bad = [fact for fact, value in facts.items() if fact.endswith(".outcome") and value.startswith(("crash", "hang"))]
    words = [f"otherwise than {source}: {listed(facts)}" for source, facts in differ.items() if facts]
    said = "; ".join([f"{len(facts)} facts", *words, *([f"crashed or hung: {listed(bad)}"] if bad else [])])
    return Judgement(not any(found for source, found in differ.items() if source != "simulated"), said)


ROWS: Final[Sequence[Row]] = [
    Row(
        name=f"{PREFIX}-{area}",
        asks=f"Does the driver answer as it is documented: {area.replace('_', ' ')}?",
        expected="no difference that is not listed with its reason",
        program=(area,),
        judge=partial(_judge, area),
        runs=Runs.CONFORMANCE,
        cost_s=WAITS.get(area, 2),
        managed_bytes=MANAGED.get(area, 0),
    )
    for area in AREAS
]
