"""Reports as ginkgo writes them, and runs, for tests."""

from __future__ import annotations

import json
from typing import Any

from rig.critest.results import Outcome, Result, Run


def spec(text: str, state: str = "passed", message: str = "") -> dict[str, Any]:
    return {
        "ContainerHierarchyTexts": ["[k8s.io] Things", "when used"],
        "LeafNodeType": "It",
        "LeafNodeText": text,
        "State": state,
        "RunTime": 1_500_000_000,
        **({"Failure": {"Message": message, "Location": {}}} if message else {}),
    }


def named(text: str) -> str:
    return f"[k8s.io] Things when used {text}"


def report(*specs: dict[str, Any]) -> bytes:
    """A whole report; what runs before all specs is in there, too."""
    before = {**spec("", "passed"), "ContainerHierarchyTexts": None, "LeafNodeType": "BeforeSuite"}
    return json.dumps([{"SuitePath": "/", "SpecReports": [before, *specs]}]).encode()


def a_run(*results: Result, selected: tuple[str, ...] = (), known: tuple[str, ...] = ()) -> Run:
    """A run that selected these specs and started those that have results."""
    by_name = {result.spec: result for result in results}
    wanted = frozenset(selected) | frozenset(by_name)
    return Run(seed=1, known=wanted | frozenset(known), selected=wanted, results=by_name, seconds=1.0)


def result(name: str, outcome: Outcome = Outcome.PASSED, message: str = "") -> Result:
    return Result(spec=name, outcome=outcome, message=message, seconds=1.0)
