"""Results of specs, read from ginkgo's JSON report. Pure.

A report contains every spec. One that is `skipped` without a reason was left out, by the selection or because the run
ended early; only the caller, who knows the selection, can tell. One with a reason was started and skipped itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from rig.errors import ComponentFailed


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Result:
    """The result of one spec; the message is why it did not pass."""

    spec: str
    outcome: Outcome
    message: str
    seconds: float


@dataclass(frozen=True)
class Run:
    """One run of critest: all specs, the selected ones, and the results of those that were started."""

    seed: int
    known: frozenset[str]
    selected: frozenset[str]
    results: Mapping[str, Result]
    seconds: float

    def specs(self, outcome: Outcome) -> frozenset[str]:
        return frozenset(spec for spec, result in self.results.items() if result.outcome is outcome)


# Ginkgo has more kinds of failures; the message says which.
_OUTCOMES: Final = {"passed": Outcome.PASSED, "skipped": Outcome.SKIPPED}


class _Failure(msgspec.Struct, rename="pascal"):
    message: str = ""


class _Spec(msgspec.Struct, rename="pascal"):
    leaf_node_type: str
    leaf_node_text: str
    state: str
    run_time: int
    container_hierarchy_texts: list[str] | None = None
    failure: _Failure | None = None

    @property
    def name(self) -> str:
        return " ".join([*(self.container_hierarchy_texts or []), self.leaf_node_text])

    @property
    def was_left_out(self) -> bool:
        return self.state == "skipped" and self.failure is None


class _Suite(msgspec.Struct, rename="pascal"):
    spec_reports: list[_Spec]


def every_spec(report: bytes) -> frozenset[str]:
    """The full names of all specs, selected or not."""
    names = [spec.name for spec in _specs(report)]
    if len(set(names)) != len(names):
        raise ComponentFailed("critest has two specs of one name; results cannot be told apart by name")
    return frozenset(names)


def started(report: bytes) -> dict[str, Result]:
    """Results of the specs that were not left out; in a dry run, of those that would run."""
    return {spec.name: _result(spec) for spec in _specs(report) if not spec.was_left_out}


def _result(spec: _Spec) -> Result:
    outcome = _OUTCOMES.get(spec.state, Outcome.FAILED)
    message = spec.failure.message.strip() if spec.failure else ""
    if outcome is Outcome.FAILED and spec.state != "failed":
        message = f"{spec.state}: {message}"
    return Result(spec=spec.name, outcome=outcome, message=message, seconds=spec.run_time / 1e9)


def _specs(report: bytes) -> Iterable[_Spec]:
    try:
        suites = msgspec.json.decode(report, type=list[_Suite])
    except msgspec.MsgspecError as error:
        raise ComponentFailed(f"critest's report is not as expected: {error}") from error
    return [spec for suite in suites for spec in suite.spec_reports if spec.leaf_node_type == "It"]
