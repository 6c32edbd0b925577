"""Results come from ginkgo's report, by full name; what was left out is no result."""

from __future__ import annotations

import json

import pytest

from rig.critest.results import Outcome, every_spec, started
from rig.errors import ComponentFailed
from unit.rig.critest.samples import named, report, spec


def test_a_spec_goes_by_the_names_of_all_that_it_is_in() -> None:
    assert every_spec(report(spec("a"))) == {"[k8s.io] Things when used a"}


def test_outcomes_messages_and_times_are_read() -> None:
    said = started(report(spec("a"), spec("b", "failed", "no \n"), spec("c", "skipped", "not here")))
    assert {name: (each.outcome, each.message) for name, each in said.items()} == {
        named("a"): (Outcome.PASSED, ""),
        named("b"): (Outcome.FAILED, "no"),
        named("c"): (Outcome.SKIPPED, "not here"),
    }
    assert {each.seconds for each in said.values()} == {1.5}


def test_a_spec_that_was_left_out_is_known_but_has_no_result() -> None:
    said = report(spec("a"), spec("b", "skipped"))
    assert every_spec(said) == {named("a"), named("b")}
    assert set(started(said)) == {named("a")}


@pytest.mark.parametrize("state", ["panicked", "timedout", "interrupted", "aborted", "pending", "never heard of"])
def test_every_other_way_to_end_is_a_failure_that_names_it(state: str) -> None:
    (only,) = started(report(spec("a", state, "in the middle"))).values()
    assert (only.outcome, only.message) == (Outcome.FAILED, f"{state}: in the middle")


def test_two_specs_of_one_name_are_refused() -> None:
    with pytest.raises(ComponentFailed, match=r"two specs of one name"):
        every_spec(report(spec("a"), spec("a")))


@pytest.mark.parametrize("content", [b"", b"[", b"{}", json.dumps([{"SpecReports": [{"State": 5}]}]).encode()])
def test_what_is_no_report_is_refused(content: bytes) -> None:
    with pytest.raises(ComponentFailed, match=r"critest's report is not as expected: "):
        started(content)
