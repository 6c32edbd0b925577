"""Commands of one machine as people type them: `partage up`, the manager and Debian's containerd below them."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig import images
from rig.client.wait import until
from rig.rig import CHECKOUT
from support.machine_image import workloads, write_archive
from support.machine_stage import PARTAGE, MachineStage, machine_up

pytestmark = pytest.mark.timeout(180)

DUO = """\
apiVersion: v1
kind: Pod
metadata: {name: duo}
spec:
  restartPolicy: Never
  initContainers:
  - {name: first, image: tools, command: [sh, -c, "echo no luck >&2; exit 3"]}
  containers:
  - {name: one, image: tools, command: [echo, one]}
  - {name: two, image: tools, command: [echo, two]}
"""
SIMULATED = "SIMULATED CARDS: nothing is computed on them\n"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineStage]:
    with machine_up(1, say=print, keep_logs=CHECKOUT / ".cache/test/rig-logs-commands") as stage:
        archive = write_archive(tmp_path_factory.mktemp("archive") / "tools.tar", {"tools": workloads()})
        stage.machine.path("/opt").mkdir(exist_ok=True)
        stage.machine.path("/opt/tools.tar").write_bytes(archive.read_bytes())
        assert stage.partage("load", "-i", "/opt/tools.tar") == "docker.io/library/tools:latest\n"
        yield stage


def begun(stage: MachineStage, *words: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*stage.machine.way_in, *PARTAGE, *words],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
    )


def test_in_front_streams_and_exit_code_are_the_containers(stage: MachineStage) -> None:
    done = stage.partage_done("run", "--rm", "tools", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", f"{SIMULATED}err\n")
    assert stage.partage("ps", "-a", "-q") == ""


def test_what_a_pod_has_of_the_card_is_shown_and_holds_within(stage: MachineStage) -> None:
    words = ("run", "-d", "--name", "train", "--share", "300", "--memory", "4Gi", "tools", "sleep", "1000")
    assert stage.partage(*words) == "train\n"
    (row,) = stage.partage("ps").splitlines()[1:]
    assert [cell.strip() for cell in row.split("   ") if cell.strip()][3:6] == ["30 %", "100 %", "4 GiB"]
    (shown,) = json.loads(stage.partage("inspect", "train"))
    assert json.loads(shown["allocation"])["containers"]["main"]["gpu"][0]["share"] == 300
    assert "train" in stage.partage("top", "--once")
    too_much = stage.partage_done("run", "--share", "800", "tools", "true")
    assert too_much.returncode == 125
    assert "800" in too_much.stderr
    assert "700" in too_much.stderr
    assert stage.partage_done("stop", "trian").stderr.endswith("did you mean train?\n")
    assert stage.partage("rm", "-f", "train") == "train\n"


def test_input_goes_in_with_its_end_and_what_comes_of_it_comes_out(stage: MachineStage) -> None:
    done = subprocess.run(
        [*stage.machine.way_in, *PARTAGE, "run", "--rm", "-i", "tools", "wc", "-l"],
        input=b"one\ntwo\n",
        capture_output=True,
        check=False,
        cwd="/",
        timeout=60,
    )
    assert (done.returncode, done.stdout.strip()) == (0, b"2"), done.stderr


def test_signals_reach_the_container_and_its_log_is_whole(stage: MachineStage) -> None:
    program = "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.1; done"
    process = begun(stage, "run", "--name", "trapping", "tools", "sh", "-c", program)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    inner = _partage_within(process.pid)
    os.kill(inner, signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (5, b"got it\n")
    assert stage.partage("logs", "trapping") == "ready\ngot it\n"
    assert stage.partage("logs", "-n", "1", "trapping") == "got it\n"
    assert stage.partage("wait", "trapping") == "5\n"
    assert "Exited (5)" in stage.partage("ps", "-a")
    stage.partage("rm", "trapping")


def test_commands_and_terminals_in_a_pod_that_runs(stage: MachineStage) -> None:
    stage.partage("run", "-d", "--name", "shell", "tools", "sleep", "1000")
    done = stage.partage_done("exec", "shell", "sh", "-c", "echo in; echo bad >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "in\n", f"{SIMULATED}bad\n")
    ours, theirs = pty.openpty()
    process = begun(
        stage, "exec", "-it", "shell", "sh", "-c", "test -t 0 && echo terminal; read line; echo got $line", stdin=theirs
    )
    os.close(theirs)
    assert process.stdout is not None
    assert process.stdout.readline() == b"terminal\r\n"
    os.write(ours, b"this\r")
    out, _ = process.communicate(timeout=30)
    os.close(ours)
    assert process.returncode == 0
    assert out.endswith(b"got this\r\n")
    stage.partage("rm", "-f", "shell")


def test_a_manager_that_dies_is_waited_for_in_front(stage: MachineStage) -> None:
    program = "echo a; while [ ! -e /go ]; do sleep 0.1; done; echo b; exit 6"
    process = begun(stage, "run", "--name", "long", "tools", "sh", "-c", program)
    assert process.stdout is not None
    assert process.stdout.readline() == b"a\n"
    stage.machine.run("kill", "-KILL", *_managers(stage))

    def why_not() -> str | None:
        done = stage.partage_done("exec", "long", "touch", "/go")
        return done.stderr if done.returncode else None

    until("the manager answers again", why_not, 30)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (6, b"b\n"), err
    assert b"waits for the manager" in err
    stage.partage("rm", "long")


def test_a_port_of_the_machine_leads_into_one_pod_and_no_second_one_takes_it(stage: MachineStage) -> None:
    stage.registry.push(images.busybox(), "busybox")
    assert stage.partage("pull", "busybox") == "docker.io/library/busybox:latest\n"
    serve = "mkdir /w; echo served > /w/index.html; exec httpd -f -h /w"
    stage.partage("run", "-d", "--name", "web", "-p", "18080:80", "busybox", "sh", "-c", serve)
    asking = ("run", "--rm", "--network", "host", "busybox", "wget", "-qO-", "http://127.0.0.1:18080/")

    def why_not() -> str | None:
        done = stage.partage_done(*asking)
        return None if done.stdout == "served\n" else done.stderr

    until("the port answers", why_not, 30)
    second = stage.partage_done("run", "-d", "-p", "18080:80", "busybox", "sleep", "1000")
    assert second.returncode == 125
    assert "port 18080/tcp of this machine is pod web's" in second.stderr
    assert why_not() is None
    stage.partage("rm", "-f", "web")


def test_what_an_init_container_says_as_it_fails_is_shown_and_the_others_never_run(stage: MachineStage) -> None:
    stage.machine.write("/opt/duo.yaml", DUO)
    done = stage.partage_done("run", "--rm", "-f", "/opt/duo.yaml")
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"{SIMULATED}first | no luck\n")


def _managers(stage: MachineStage) -> list[str]:
    return stage.machine.run("pgrep", "-f", "partage_cli.machine.manager").split()


def _partage_within(pid: int) -> int:
    """The process in the machine that a way in leads to: its last descendant."""
    while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        pid = int(children[-1])
    return pid
