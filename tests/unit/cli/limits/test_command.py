"""`partage limits` as people run it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_isolation.control.questions import Answer, LimitsSet, No, Question, SetLimits
from support.broker import CARD, GIB, container, held, pod, serving, told
from unit.cli.program import partage

pytestmark = pytest.mark.slow


class Limited:
    """A broker whose limits change."""

    def __init__(self) -> None:
        self.limit_bytes = 8 * GIB

    def __call__(self, question: Question) -> Answer:
        if not isinstance(question, SetLimits):
            return told(container(pod(), held(limit_bytes=self.limit_bytes)))
        if (question.memory_bytes or 0) > 8 * GIB:
            return No(why="partage: the pod was granted 8 GiB; only a new allocation raises that")
        self.limit_bytes = 8 * GIB if question.memory_bytes is None else question.memory_bytes
        return LimitsSet(memory_bytes=self.limit_bytes, charged_bytes=5 * GIB)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    with serving(tmp_path, Limited()):
        yield tmp_path


def test_limits_are_shown(root: Path) -> None:
    ended = partage(root, "limits", "train-0")
    assert ended.stdout.splitlines() == [
        "POD              CONTAINER   CARD           MEMORY   LIMIT   GRANTED   REFUSED",
        "team-a/train-0   main        GPU-5a1e3c8e   5 GiB    8 GiB   8 GiB     0",
    ]
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_limit_is_lowered_and_given_back(root: Path) -> None:
    lowered = json.loads(partage(root, "limits", "train-0", "--memory", "4Gi", "-o", "json").stdout)
    assert [(each["card"], each["limit_bytes"], each["granted_bytes"]) for each in lowered["limits"]] == [
        (CARD, 4 * GIB, 8 * GIB)
    ]
    ended = partage(root, "limits", "train-0", "--reset")
    assert "8 GiB   8 GiB" in ended.stdout


def test_more_than_granted_is_the_brokers_to_refuse(root: Path) -> None:
    ended = partage(root, "limits", "train-0", "--memory", "9Gi")
    why = "partage: the pod was granted 8 GiB; only a new allocation raises that"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"partage: {why}\n")


@pytest.mark.parametrize("quantity", ["-1", "4 GiB", "1m", "lots"])
def test_what_is_no_amount_is_wrong_usage(root: Path, quantity: str) -> None:
    ended = partage(root, "limits", "train-0", "--memory", quantity)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "allowed: a" in ended.stderr


def test_lowering_and_resetting_exclude_each_other(root: Path) -> None:
    assert partage(root, "limits", "train-0", "--memory", "1Gi", "--reset").returncode == 2
