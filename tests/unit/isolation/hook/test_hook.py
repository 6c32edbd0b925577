"""The hook in a grant's containers: the broker hears of each before it begins, or it does not start."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from partage_isolation.hook import MODULE, main
from partage_isolation.wire.messages import Enter, Entered, No
from partage_plugins.vocabulary.claims import ClaimUid, claim_key
from support.broker import serving

KEY = claim_key(ClaimUid("5f0c"))
ID = "1a" * 32


@pytest.fixture
def root() -> Iterator[Path]:
    with TemporaryDirectory() as folder:  # a socket's path must be short
        yield Path(folder)


def state(**said: Any) -> bytes:
    """As runc and crun write it."""
    known = {"ociVersion": "1.0.2", "id": ID, "status": "creating", "pid": 7, "bundle": "/b", "annotations": {"a": "b"}}
    return json.dumps(known | said).encode()


def test_the_broker_hears_which_container_begins_with_which_process(root: Path) -> None:
    with serving(root) as broker:
        broker.answering = lambda _: Entered()
        assert main([str(root), KEY], state()) == 0
    assert broker.asked == [Enter(key=KEY, container=ID, pid=7)]


def test_a_broker_that_refuses_keeps_it_from_starting_in_its_own_words(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(root) as broker:
        broker.answering = lambda _: No(why="the grant has ended")
        assert main([str(root), KEY], state()) == 1
    assert capsys.readouterr().err == "partage: the container does not start: the grant has ended\n"


def test_a_broker_that_is_away_keeps_it_from_starting(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(root), KEY], state()) == 1
    assert "no broker answers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], state()),
        (["/", "no key"], state()),
        (["/", KEY], b""),
        (["/", KEY], b"[]"),
        (["/", KEY], state(pid=0)),
        (["/", KEY], state(id="short")),
        (["/", KEY], state(id=f"{'1a' * 32}/..")),
    ],
)
def test_nonsense_is_one_line_and_starts_nothing(
    words: list[str], said: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words, said) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_it_needs_no_environment(root: Path) -> None:
    argv = (sys.executable, "-P", "-m", MODULE, str(root), KEY)
    with serving(root) as broker:
        broker.answering = lambda _: Entered()
        subprocess.run(argv, input=state(), env={}, check=True)
