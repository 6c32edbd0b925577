"""A rig leaves the machine as it found it, however it ends.

These tests start rigs as people do, with `tools/rig up`, and compare the machine before and after.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from rig.client.wait import until
from rig.machine.cleanup import processes_of
from rig.machine.slots import BASE
from rig.machine.snapshot import Snapshot, look
from rig.patience import patience_s
from rig.programs import Programs, ensure
from rig.rig import CHECKOUT
from trial.keeper import all_up

RIG = CHECKOUT / "tools/rig"


@dataclass(frozen=True)
class Cluster:
    """A running rig, as a user's shell sees it."""

    slot: int
    keeper: int
    kubeconfig: str
    path: str

    def say(self, *words: str) -> str:
        """Output of kubectl, found by the PATH that `up` prints."""
        environment = {**os.environ, "KUBECONFIG": self.kubeconfig, "PATH": self.path}
        argv = ["/usr/bin/env", "kubectl", *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True, env=environment).stdout

    def run_pods(self, count: int) -> None:
        for number in range(count):
            self.say("run", f"pod-{number}", "--image=busybox", "--restart=Never", "--", "sleep", "600")
        self.say("wait", "pod", "--all", "--for=condition=Ready", f"--timeout={patience_s():.0f}s")


@pytest.fixture(scope="module")
def programs() -> Programs:
    return ensure("default", "helm", "systemd", say=print)


@pytest.fixture
def before(programs: Programs) -> Iterator[Snapshot]:
    """The machine before the test, with other people's rigs left alone."""
    found, others = look(), [each.slot for each in all_up()]
    yield found
    for each in all_up():
        if each.slot not in others:
            subprocess.run([RIG, "down", str(each.slot)], check=True, capture_output=True)


def up(nodes: int = 1) -> Cluster:
    """Start a rig as the page "Install" says."""
    typed = f'eval "$(make rig-up NODES={nodes})" && command -v kubectl helm >&2 && echo "$KUBECONFIG" "$PATH"'
    done = subprocess.run(["bash", "-c", typed], check=True, capture_output=True, text=True, cwd=CHECKOUT)
    kubeconfig, path = done.stdout.strip().split(" ", 1)
    found = next(each for each in all_up() if each.kubeconfig == kubeconfig)
    return Cluster(found.slot, found.keeper, kubeconfig, path)


def down(rig: Cluster) -> str:
    return subprocess.run([RIG, "down", str(rig.slot)], check=True, capture_output=True, text=True).stderr


@pytest.mark.extended("starts two clusters for it; one whose owner is killed is in every run")
def test_two_rigs_at_once_outlive_their_shells_and_leave_nothing(before: Snapshot) -> None:
    subprocess.run(["setsid", "sh", "-c", f"{RIG} up; kill -HUP -$$; kill -9 $$"], check=False, capture_output=True)
    found, second = all_up()[-1], up()
    rigs = [Cluster(found.slot, found.keeper, found.kubeconfig, second.path), second]
    assert len({rig.slot for rig in rigs}) == 2
    for rig in rigs:
        rig.run_pods(2)
    for rig in rigs:
        assert rig.say("get", "pods", "-o", "name").split() == ["pod/pod-0", "pod/pod-1"]
    down(rigs[0])
    rigs[1].say("exec", "pod-0", "--", "true")
    down(rigs[1])
    assert before.what_changed(look()) == []


def test_a_killed_owner_takes_every_process_along_and_down_takes_the_rest(before: Snapshot) -> None:
    rig = up(nodes=2)
    rig.run_pods(3)
    during = before.what_changed(look(), own=rig.slot)
    for kind in ("process", "device", "route", "cgroup", "file"):
        assert any(line.startswith(kind) for line in during), (kind, during)
    os.kill(rig.keeper, signal.SIGKILL)
    folder = BASE / str(rig.slot)
    until("no process is left", lambda: str(left) if (left := processes_of(folder)) else None)
    assert folder.exists()
    assert f"gone: rig {rig.slot}" in down(rig)
    assert before.what_changed(look()) == []


def test_a_start_that_is_interrupted_leaves_nothing(before: Snapshot) -> None:
    for seconds in (0.4, 2.0):
        listening = ["env", "--default-signal=INT", str(RIG), "up"]  # a shell's background jobs ignore SIGINT
        with subprocess.Popen(listening, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as starting:
            time.sleep(seconds)
            starting.send_signal(signal.SIGINT)
        assert starting.returncode != 0
        assert before.what_changed(look()) == []


def test_down_of_what_is_not_up_says_so(before: Snapshot) -> None:
    refused = subprocess.run([RIG, "down", "29"], check=False, capture_output=True, text=True)
    assert refused.returncode == 1
    assert "no rig 29 is up; there is: " in refused.stderr
    assert before.what_changed(look()) == []
