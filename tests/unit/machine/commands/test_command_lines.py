"""Commands before a scripted manager: what they ask, what they print where, and how they end."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO

import pytest

from partage_cli.machine.pods.pod import Container, Pod, Spec
from partage_cli.machine.wire.messages import (
    Done,
    DoneImages,
    DoneInspect,
    DonePods,
    DoneRun,
    DoneWait,
    Event,
    Events,
    Hello,
    Image,
    Images,
    Inspect,
    Load,
    LogLine,
    Logs,
    No,
    Progress,
    Ps,
    Pull,
    Question,
    Rm,
    Run,
    Signal,
    Start,
    Stop,
    Wait,
)
from rig.patience import patience_s
from support.scripted_manager import Hangup, Said, Script, pod, scripted
from unit.cli.program import PARTAGE, environment, partage

ASKED = Pod(spec=Spec(containers=(Container(name="main", image="busybox"),)))
UNKNOWN = No(code="unknown-name", why="there is no pod of that name")


def line(data: bytes, stream: str = "stdout", at: str = "2026-11-23T19:30:00.1Z", *, part: bool = False) -> LogLine:
    return LogLine(stream=stream, at=at, data=data, part=part)  # type: ignore[arg-type]


IMAGES = DoneImages(images=(Image(id="sha256:01", names=("busybox:1",), bytes=1),))
RAN = (Progress(step="pull", text="busybox"), DoneRun(pod=pod()))
ANSWERS: Mapping[type, tuple[Said, ...]] = {
    Ps: (DonePods(pods=(pod(),)),),
    Run: RAN,
    Start: RAN,
    Logs: (line(b"out"), line(b"err", "stderr", "2026-11-23T19:30:00.2Z"), Done()),
    Wait: (DoneWait(exit_code=3),),
    Inspect: (DoneInspect(pod=pod(), record=ASKED, logs={"main": "/log"}),),
    Images: (IMAGES,),
    Pull: (IMAGES,),
    Load: (IMAGES,),
    Events: (Event(at_ns=0, kind="start", name="train"), Done()),
}


def script(question: Question) -> Iterable[Said]:
    """A machine with one pod, `train`, that writes two lines and ends with 3."""
    known = getattr(question, "name", "train") in {"train", "uid-of-train"}
    return ANSWERS.get(type(question), (Done(),)) if known else (UNKNOWN,)


def ran(*arguments: str, answers: Script = script) -> tuple[subprocess.CompletedProcess[str], list[Question]]:
    with scripted(answers) as manager:
        return partage(manager.root, *arguments), manager.asked


@pytest.mark.parametrize(
    ("arguments", "asked", "out"),
    [
        (("ps", "-q"), Ps(), "train\n"),
        (("ps", "-a", "-q"), Ps(all=True), "train\n"),
        (("stop", "-t", "2", "train"), Stop(name="train", grace_s=2), "train\n"),
        (("start", "train"), Start(name="train"), "train\n"),
        (("rm", "-f", "train"), Rm(name="train", force=True), "train\n"),
        (("wait", "train"), Wait(name="train"), "3\n"),
        (("logs", "-n", "5", "-c", "main", "train"), Logs(name="train", container="main", tail=5), "out\n"),
        (("pull", "busybox"), Pull(image="busybox"), "busybox:1\n"),
    ],
)
def test_each_command_asks_one_question(arguments: tuple[str, ...], asked: Question, out: str) -> None:
    done, questions = ran(*arguments)
    assert (questions, done.stdout, done.returncode) == ([asked], out, 0), done.stderr


def test_a_table_for_people_and_json_for_programs() -> None:
    assert ran("ps")[0].stdout.startswith("NAME")
    assert json.loads(ran("ps", "-o", "json")[0].stdout)["pods"][0]["name"] == "train"
    assert json.loads(ran("inspect", "train")[0].stdout)[0]["logs"] == {"main": "/log"}
    assert json.loads(ran("images", "-o", "json")[0].stdout)["images"][0]["names"] == ["busybox:1"]
    assert json.loads(ran("events", "-o", "json")[0].stdout)["kind"] == "start"


def test_an_archive_is_named_by_its_whole_path(tmp_path: Path) -> None:
    archive = tmp_path / "app.tar"
    archive.touch()
    assert ran("load", "-i", str(archive))[1] == [Load(path=str(archive))]
    assert ran("load", "-i", str(tmp_path / "none"))[0].returncode == 1


def test_one_unknown_name_keeps_the_others_from_nothing_and_near_ones_are_named() -> None:
    done, questions = ran("stop", "trian", "train")
    assert (done.stdout, done.returncode) == ("train\n", 1)
    assert done.stderr == "partage: there is no pod of that name; did you mean train?\n"
    assert questions[-1] == Stop(name="train")


def test_every_command_says_that_cards_are_simulated() -> None:
    with scripted(script, Hello(manager="1", simulated=True)) as manager:
        done = partage(manager.root, "ps", "-q")
    assert (done.stdout, done.stderr) == ("train\n", "SIMULATED CARDS: nothing is computed on them\n")


def test_in_front_each_stream_stays_itself_and_the_exit_code_is_the_containers() -> None:
    done, questions = ran("run", "--share", "300", "busybox", "--", "sh", "-c", "x")
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "pulling busybox\nerr\n", 3)
    asked = questions[0]
    assert isinstance(asked, Run)
    assert asked.pod.spec.containers[0].args == ("sh", "-c", "x")
    assert sorted(questions[1:], key=repr) == [
        Logs(name="uid-of-train", container="main", follow=True),
        Wait(name="uid-of-train"),
    ]


def test_what_is_removed_at_its_end_is_removed_once_all_was_shown() -> None:
    done, questions = ran("run", "--rm", "busybox")
    assert done.stdout == "out\n"
    assert questions[0] == Run(pod=questions[0].pod)  # type: ignore[union-attr]
    assert questions[-1] == Rm(name="uid-of-train", force=True)


def test_on_its_own_the_manager_removes_it_and_its_name_is_printed() -> None:
    done, questions = ran("run", "-d", "--rm", "--wait", "busybox")
    assert (done.stdout, done.returncode) == ("train\n", 0)
    assert questions == [Run(pod=questions[0].pod, remove=True, wait=True)]  # type: ignore[union-attr]


def test_what_was_not_run_is_one_line_and_125() -> None:
    done, _ = ran("run", "busybox", answers=lambda _: [No(code="no-room", why="no card has 300 milli; card 1 has 200")])
    assert (done.stderr, done.returncode) == ("partage: no card has 300 milli; card 1 has 200\n", 125)


def test_options_that_can_not_be_are_usage() -> None:
    for arguments in (("run",), ("run", "--user", "me", "i"), ("run", "--rm", "--restart", "always", "i")):
        done, questions = ran(*arguments)
        assert (done.returncode, questions) == (2, []), done.stderr


def test_a_document_is_run_as_it_says_and_its_notes_are_for_people(tmp_path: Path) -> None:
    document = tmp_path / "pod.yaml"
    document.write_text("{kind: Pod, metadata: {name: x}, spec: {nodeName: n, containers: [{name: c, image: i}]}}")
    done, questions = ran("run", "-d", "-f", str(document))
    assert done.stderr.splitlines()[0] == "spec.nodeName has no meaning on one machine and is left out"
    asked = questions[0]
    assert isinstance(asked, Run)
    assert (asked.restart, asked.pod.metadata.name) == ("always", "x")
    assert ran("run", "-f", str(document), "--share", "300")[0].returncode == 2
    assert ran("run", "-f", str(document), "busybox")[0].returncode == 2


def test_a_dry_run_prints_a_pod_and_asks_no_manager(tmp_path: Path) -> None:
    printed = partage(tmp_path, "run", "--share", "300", "--dry-run", "busybox:1").stdout
    document = tmp_path / "pod.yaml"
    document.write_text(printed)
    again = partage(tmp_path, "run", "--dry-run", "-f", str(document))
    assert (again.stdout, again.stderr) == (printed, "")
    assert "schedulerName: partage-scheduler" in printed


class InFront:
    """`partage run` as a process of its own, before a pod that ends when the test says so."""

    def __init__(self) -> None:
        self.ends = threading.Event()
        self.followed = threading.Event()
        self.signalled = threading.Event()
        self.stopped = threading.Event()
        self.hung_up = False

    def script(self, question: Question) -> Iterable[Said]:
        match question:
            case Logs():
                yield line(b"first")
                self.followed.set()
                self.ends.wait()
                yield line(b"first")
                yield line(b"last", at="2026-11-23T19:30:00.11Z")
                yield Done()
            case Wait():
                self.ends.wait()
                yield DoneWait(exit_code=7)
            case Signal():
                yield Done()
                self.signalled.set()
            case Stop():
                self.ends.set()
                self.stopped.set()
                yield Done()
            case _:
                yield from script(question)

    def run(self, do: Callable[[subprocess.Popen[bytes]], None]) -> tuple[int, bytes, list[Question]]:
        with scripted(self.script) as manager:
            process = subprocess.Popen(
                [*PARTAGE, "--root", str(manager.root), "run", "busybox"],
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            with process:
                assert _first(process.stdout) == b"first\n"
                do(process)
                out, _ = process.communicate()
            return process.returncode, out, manager.asked


def _first(stream: IO[bytes] | None) -> bytes:
    assert stream is not None
    return stream.readline()


def test_signals_are_passed_on_and_a_second_interrupt_ends_at_once() -> None:
    front = InFront()

    def interrupt(process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGTERM)
        assert front.signalled.wait(patience_s())
        front.signalled.clear()
        process.send_signal(signal.SIGINT)
        assert front.signalled.wait(patience_s())
        process.send_signal(signal.SIGINT)
        assert front.stopped.wait(patience_s())

    code, out, asked = front.run(interrupt)
    assert (code, out) == (7, b"first\nlast\n")
    assert [each.number for each in asked if isinstance(each, Signal)] == [signal.SIGTERM, signal.SIGINT]
    assert Stop(name="uid-of-train", grace_s=0) in asked


def test_a_manager_that_is_away_for_a_while_costs_no_line_and_shows_none_twice() -> None:
    front = InFront()
    again = threading.Event()
    whole = front.script

    def hanging_up(question: Question) -> Iterable[Said]:
        if isinstance(question, Logs) and not again.is_set():
            yield line(b"first")
            again.set()
            raise Hangup
        front.ends.set()
        yield from whole(question)

    front.script = hanging_up  # type: ignore[method-assign]
    code, out, _ = front.run(lambda _: None)
    assert (code, out) == (7, b"last\n")
