"""A conformance run is wrong if it deviates from the list of exceptions, for better or worse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rig.critest import Exemption, Outcome, exemptions, judge
from rig.critest.conditions import CONDITIONS
from rig.critest.results import Result, Run, every_spec, started
from rig.errors import ComponentFailed

PASSED, FAILED, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED
FAILS = Exemption("a", FAILED, "known")
SKIPS = Exemption("a", SKIPPED, "no such kernel")
SOMETIMES = Exemption("a", SKIPPED, "no such kernel", when="old kernel")
OLD, NEW = {"old kernel": True}, {"old kernel": False}


def a_run(*selected: str, known: tuple[str, ...] = (), **outcomes: Outcome) -> Run:
    """A run of the specs with outcomes; `selected` did not run."""
    results = {
        spec: Result(spec=spec, outcome=outcome, message="" if outcome is PASSED else "x", seconds=1)
        for spec, outcome in outcomes.items()
    }
    wanted = frozenset(selected) | frozenset(results)
    return Run(seed=1, known=wanted | frozenset(known), selected=wanted, results=results, seconds=1)


@pytest.mark.parametrize(
    ("run", "listed", "holds", "wrong"),
    [
        (a_run(a=PASSED, b=PASSED), [], {}, []),
        (a_run(a=FAILED), [], {}, ["failed: a: x"]),
        (a_run(a=SKIPPED), [], {}, ["skipped: a: x"]),
        (a_run(a=FAILED), [FAILS], {}, []),
        (a_run(a=SKIPPED), [SKIPS], {}, []),
        (a_run(a=PASSED), [FAILS], {}, ["passed, but listed as failed (known): a"]),
        (a_run(a=FAILED), [SKIPS], {}, ["failed, but listed as skipped (no such kernel): a: x"]),
        (a_run(b=PASSED), [FAILS], {}, ["listed, but there is no such spec: a"]),
        (a_run(a=SKIPPED), [SOMETIMES], OLD, []),
        (a_run(a=SKIPPED), [SOMETIMES], NEW, ["skipped: a: x"]),
        (a_run(a=PASSED), [SOMETIMES], NEW, []),
        (a_run(a=PASSED), [SOMETIMES], OLD, ["passed, but listed as skipped (no such kernel): a"]),
        (a_run(a=SKIPPED), [SOMETIMES, SKIPS], OLD, ["listed twice for this machine: a"]),
        (a_run("a"), [FAILS], {}, ["selected, but did not run: a"]),
        (a_run(b=PASSED, known=("a",)), [FAILS], {}, []),
        (a_run(known=("a",)), [], {}, ["no spec was selected"]),
    ],
)
def test_a_run_is_judged_by_the_list(
    run: Run, listed: list[Exemption], holds: dict[str, bool], wrong: list[str]
) -> None:
    assert judge(run, listed, holds) == wrong


def test_the_list_uses_every_condition_and_names_no_spec_twice() -> None:
    listed = [(each.spec, each.when) for each in exemptions()]
    assert {when for _, when in listed if when} == CONDITIONS
    assert len(set(listed)) == len(listed)


def spec(text: str, state: str, message: str = "") -> dict[str, Any]:
    return {
        "ContainerHierarchyTexts": ["[k8s.io] Things"],
        "LeafNodeType": "It",
        "LeafNodeText": text,
        "State": state,
        "RunTime": 1_500_000_000,
        **({"Failure": {"Message": message, "Location": {}}} if message else {}),
    }


def test_results_are_read_from_the_report_by_full_name_and_what_was_left_out_is_none() -> None:
    specs = [spec("a", "passed"), spec("b", "panicked", "no"), spec("c", "skipped", "why"), spec("d", "skipped")]
    report = json.dumps([{"SuitePath": "/", "SpecReports": specs}]).encode()
    assert {name: (each.outcome, each.message) for name, each in started(report).items()} == {
        "[k8s.io] Things a": (PASSED, ""),
        "[k8s.io] Things b": (FAILED, "panicked: no"),
        "[k8s.io] Things c": (SKIPPED, "why"),
    }
    assert len(every_spec(report)) == 4


@pytest.mark.parametrize("content", [b"", b"[", b"{}"])
def test_what_is_no_report_is_refused(content: bytes) -> None:
    with pytest.raises(ComponentFailed, match=r"critest's report is not as expected: "):
        started(content)
