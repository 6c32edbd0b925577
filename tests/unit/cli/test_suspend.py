"""`partage resume` leaves pods alone that the scheduler suspended: their room is another pod's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partage_isolation.wire.messages import Answer, Question, Suspend, Suspended
from partage_plugins.api.places import SUSPENDED_FILE
from support.broker import FakeBroker, container, held, pod, told
from unit.cli.program import partage

UID = "uid-of-team-a-train"


def answer(question: Question) -> Answer:
    if isinstance(question, Suspend):
        return Suspended(is_on=question.is_on, resident_bytes=0, moved_bytes=0, is_done=True)
    return told(container(pod("train"), held()))


@pytest.mark.parametrize(
    ("report", "is_refused"),
    [
        ({UID: {"gen": 2, "is_done": True}}, True),
        ({UID: {"gen": 2, "why": "no host memory"}}, False),
        ({"another": {"gen": 2, "is_done": True}}, False),
        (None, False),
    ],
    ids=["suspended", "refused", "another pod", "none"],
)
def test_only_what_root_suspended_is_resumed(
    tmp_path: Path, report: dict[str, object] | None, *, is_refused: bool
) -> None:
    if report is not None:
        path = tmp_path / SUSPENDED_FILE
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(report))
    with FakeBroker(tmp_path, answer) as broker:
        done = partage(tmp_path, "resume", "train")
        assert (done.returncode != 0, "suspended by the scheduler" in done.stderr) == (is_refused, is_refused)
        assert any(isinstance(each, Suspend) for each in broker.asked) is not is_refused
        assert partage(tmp_path, "suspend", "train").returncode == 0
