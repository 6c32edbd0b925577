"""`partage limits` from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from partage_isolation.wire.messages import Answer, LimitsSet, Question, Rejection, SetLimits
from support.broker import CARD, GIB, FakeBroker, container, held, pod, time_told, told
from unit.cli.program import partage

pytestmark = pytest.mark.slow


class Limited:
    """A broker whose limits can be changed."""

    def __init__(self) -> None:
        self.limit_bytes, self.share_milli, self.limit_milli = 8 * GIB, 500, 1000

    def __call__(self, question: Question) -> Answer:
        if not isinstance(question, SetLimits):
            now = held(limit_bytes=self.limit_bytes, time=time_told(1, 0.5))
            return told(container(pod(), replace(now, share_milli=self.share_milli, limit_milli=self.limit_milli)))
        if (question.memory_bytes or 0) > 8 * GIB:
            return Rejection(why="partage: the pod was granted 8 GiB; only a new allocation raises that")
        for name, granted in (("memory_bytes", 8 * GIB), ("share_milli", 500), ("limit_milli", 1000)):
            value = getattr(question, name)
            if value is not UNSET:
                setattr(self, name.replace("memory", "limit"), granted if value is None else value)
        return LimitsSet(memory_bytes=self.limit_bytes, charged_bytes=5 * GIB)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    with FakeBroker(tmp_path, Limited()):
        yield tmp_path


def test_limits_are_shown(root: Path) -> None:
    ended = partage(root, "limits", "train-0")
    assert ended.stdout.splitlines() == [
        "POD              CONTAINER   CARD           MEMORY   LIMIT   GRANTED   REFUSED   SHARE",
        "team-a/train-0   main        GPU-5a1e3c8e   5 GiB    8 GiB   8 GiB     0         50 %",
    ]
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_limit_is_lowered_and_given_back(root: Path) -> None:
    lowered = json.loads(partage(root, "limits", "train-0", "--memory", "4Gi", "-o", "json").stdout)
    assert [(each["card"], each["limit_bytes"], each["granted_bytes"]) for each in lowered["limits"]] == [
        (CARD, 4 * GIB, 8 * GIB)
    ]
    ended = partage(root, "limits", "train-0", "--reset")
    assert "8 GiB   8 GiB" in ended.stdout


def test_share_and_limit_are_lowered_and_memory_stays(root: Path) -> None:
    partage(root, "limits", "train-0", "--memory", "4Gi")
    ended = partage(root, "limits", "train-0", "--share", "300", "--limit", "455")
    assert ended.stdout.splitlines()[1].endswith("4 GiB   8 GiB     0         30-45.5 % (of 50 %)")
    assert (
        partage(root, "limits", "train-0", "--reset")
        .stdout.splitlines()[1]
        .endswith("8 GiB   8 GiB     0         50 %")
    )


@pytest.mark.parametrize("milli", ["-1", "1001", "30%", "0.3"])
def test_what_is_no_part_of_a_card_is_wrong_usage(root: Path, milli: str) -> None:
    assert partage(root, "limits", "train-0", "--share", milli).returncode == 2


def test_more_than_granted_is_the_brokers_to_refuse(root: Path) -> None:
    ended = partage(root, "limits", "train-0", "--memory", "9Gi")
    why = "partage: the pod was granted 8 GiB; only a new allocation raises that"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"partage: {why} [PTG201]\n")


@pytest.mark.parametrize("quantity", ["-1", "4 GiB", "1m", "lots"])
def test_what_is_no_amount_is_wrong_usage(root: Path, quantity: str) -> None:
    ended = partage(root, "limits", "train-0", "--memory", quantity)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "allowed: a" in ended.stderr


def test_lowering_and_resetting_exclude_each_other(root: Path) -> None:
    assert partage(root, "limits", "train-0", "--memory", "1Gi", "--reset").returncode == 2
