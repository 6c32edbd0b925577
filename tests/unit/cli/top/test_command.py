"""`partage top` from the command line: once, repeatedly, and without a broker."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from partage_cli.machine.setup.decision import SIMULATED, Decision, write_decision
from partage_cli.top import engine_names
from partage_cli.top.engine_names import EngineNames
from partage_oci.words import NAMESPACE
from partage_plugins.api import PodName, PodRef, PodUid
from partage_plugins.api.places import BROKER_SOCKET
from rig.client.wait import until
from support.broker import FakeBroker, container, held, pod, told
from unit.cli.program import PARTAGE, environment, partage

pytestmark = pytest.mark.slow
HOW = told(container(pod(), held()))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


class Terminal:
    """`partage top` on a terminal of its own."""

    def __init__(self, root: Path, **variables: str) -> None:
        self._ours, theirs = pty.openpty()
        argv = [*PARTAGE, "--root", str(root), "top", "--every", "0.1"]
        self.process = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(**variables))
        os.close(theirs)
        self.seen = ""

    def press(self, key: str) -> None:
        os.write(self._ours, key.encode())

    def until(self, found: Callable[[str], object]) -> str:
        """The output since the last call, once `found` holds."""

        def why_not() -> str | None:
            if found(self.seen):
                return None
            if select.select([self._ours], [], [], 0.1)[0]:
                piece = self._read()
                assert piece, f"it ended: {self.seen[-2000:]!r}"
                self.seen += piece.decode()
            return repr(self.seen[-2000:])

        until("it is drawn", why_not, every_s=0)
        drawn, self.seen = self.seen, ""
        return drawn

    def ended(self) -> int:
        """The exit code; the last output is in `seen`."""
        while piece := self._read():
            self.seen += piece.decode()
        os.close(self._ours)
        return self.process.wait()

    def _read(self) -> bytes:
        try:
            return os.read(self._ours, 1 << 16)
        except OSError:  # the other end is closed
            return b""


def test_once_for_people_and_for_programs(root: Path) -> None:
    with FakeBroker(root, HOW):
        shown, programs = partage(root, "top", "--once"), partage(root, "top", "--once", "-o", "json")
    assert (shown.returncode, programs.returncode) == (0, 0)
    assert re.search(r"^team-a/train-0 +main +0 .* 5 GiB +8 GiB ", shown.stdout, flags=re.MULTILINE)
    assert "\x1b" not in shown.stdout
    assert json.loads(programs.stdout)["containers"][0]["pod"]["name"] == "train-0"


def test_where_cards_are_simulated_every_screen_says_so(root: Path) -> None:
    write_decision(root, Decision(simulated="h100", cards=1))
    with FakeBroker(root, HOW):
        shown, data = partage(root, "top", "--once"), partage(root, "top", "--once", "-o", "json")
        limits = partage(root, "limits", "train-0")
    assert shown.stdout.splitlines()[1] == SIMULATED
    assert [data.stderr, limits.stderr] == [f"{SIMULATED}\n"] * 2
    assert json.loads(data.stdout)["cards"]


def test_containers_of_engines_have_the_names_that_these_give(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def names(engine: str, *, within_s: float) -> dict[str, tuple[str, str]]:
        assert within_s <= 1, "one that hangs is not waited for"
        asked.append(engine)
        return {"5284960a": ("train", "image")} if engine == "docker" else {}

    monkeypatch.setattr(engine_names, "names", names)
    known, unknown = (
        PodRef(namespace=NAMESPACE, name=PodName(id_[:4]), uid=PodUid(id_)) for id_ in ("5284960a", "0123ab")
    )
    engines, report = (
        EngineNames(),
        told(container(known, held()), container(unknown, held()), container(pod(), held())),
    )
    for _ in range(2):
        assert [each.pod.name for each in engines.put_into(report).containers] == ["train", "0123", "train-0"]
    assert asked == ["docker", "podman"], "not again for each look"


def test_where_the_output_is_no_terminal_once_is_enough(root: Path) -> None:
    with FakeBroker(root, HOW):
        assert partage(root, "top").returncode == 0


@pytest.mark.parametrize("more", [(), ("--once", "-o", "json")])
def test_without_a_broker_and_a_cluster_there_is_one_line_and_exit_code_1(
    root: Path, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(root))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    ended = partage(root, "top", *more)
    why = f"no broker answers at {root / BROKER_SOCKET}: No such file or directory; is partage-broker running?"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"partage: {why} [PTG401]\n")


def test_programs_that_follow_get_a_line_each_time(root: Path) -> None:
    argv = [*PARTAGE, "--root", str(root), "top", "-o", "json", "--every", "0.1"]
    with (
        FakeBroker(root, HOW),
        subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment()) as following,
    ):
        assert following.stdout is not None
        lines = [json.loads(following.stdout.readline()) for _ in range(3)]
        following.send_signal(signal.SIGINT)
        assert following.wait() == 130
    assert [line["broker"] for line in lines] == ["0.1.0"] * 3


def test_it_is_drawn_anew_until_somebody_presses_q(root: Path) -> None:
    with FakeBroker(root, HOW) as broker:
        terminal = Terminal(root)
        terminal.until(lambda seen: "5 GiB" in seen)
        broker.answering = told(container(pod(), held(charged_bytes=6 << 30)))
        drawn = terminal.until(lambda seen: "6 GiB" in seen)
        assert "\x1b[32m" in drawn
        terminal.press("q")
        assert terminal.ended() == 0
    assert terminal.seen.endswith("\x1b[?25h\x1b[?1049l")


def test_a_broker_that_goes_away_is_told_and_waited_for(root: Path) -> None:
    with FakeBroker(root, HOW):
        terminal = Terminal(root)
        terminal.until(lambda seen: "5 GiB" in seen)
    drawn = terminal.until(lambda seen: "no broker answers" in seen and "REFUSED" in seen.split("no broker", 1)[1])
    assert "train-0" in drawn
    with FakeBroker(root, told(container(pod("after"), held()))):
        terminal.until(lambda seen: "team-a/after" in seen)
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.ended() == 0


def test_a_plain_terminal_gets_no_colours(root: Path) -> None:
    with FakeBroker(root, HOW):
        terminal = Terminal(root, NO_COLOR="1")
        drawn = terminal.until(lambda seen: seen.count("5 GiB") > 1)
        terminal.process.terminate()
        assert terminal.ended() == 128 + signal.SIGTERM
    assert not re.search(r"\x1b\[[0-9]+m", drawn)
    assert terminal.seen.endswith("\x1b[?25h\x1b[?1049l")
