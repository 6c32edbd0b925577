"""The list itself: what is in it, and that a mistake in it is noticed when it is read."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from rig.critest import Outcome, exemptions
from rig.critest.conditions import CONDITIONS

GROUP = """
[[exempt]]
outcome = "failed"
reason = "nobody can"
specs = ["a", "b"]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "list.toml"
    path.write_text(text)
    return path


def test_a_group_is_an_exemption_for_each_of_its_specs(tmp_path: Path) -> None:
    said = exemptions(written(tmp_path, GROUP))
    assert [(each.spec, each.outcome, each.reason, each.when) for each in said] == [
        ("a", Outcome.FAILED, "nobody can", ""),
        ("b", Outcome.FAILED, "nobody can", ""),
    ]


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (GROUP.replace("failed", "passes"), "Invalid enum value 'passes'"),
        (GROUP.replace("reason", "because"), "unknown field `because`"),
        (GROUP.replace('reason = "nobody can"', ""), "missing required field `reason`"),
        (GROUP.replace('reason = "nobody can"', 'reason = ""'), "length >= 1"),
        (GROUP.replace('["a", "b"]', "[]"), "length >= 1"),
    ],
)
def test_a_mistake_is_refused_with_its_place(tmp_path: Path, mistake: str, said: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=said):
        exemptions(written(tmp_path, mistake))


def test_every_condition_of_the_real_list_is_looked_at_and_every_one_is_used() -> None:
    assert {each.when for each in exemptions() if each.when} == CONDITIONS


def test_no_spec_is_listed_twice_under_one_condition() -> None:
    listed = [(each.spec, each.when) for each in exemptions()]
    assert len(set(listed)) == len(listed)
