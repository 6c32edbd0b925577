"""A node is switched many times while things break at random: it is always ready with its runtime in the end.

    make soak-switch                     # 50 rounds from seed 1, about half an hour on a free machine
    tools/named soak switch --rounds 5 --seed 7

A round has at most one fault of those that `make test` has once each, or a reboot; and the command may be killed, at
a moment that the seed chooses. The way back starts after 10 s. Then the node must be ready with containerd, start a
pod, and have the containers that it had. A round in which nothing befalls the node must end with crishim in force.

Exit status: 0 done, 3 a round was not as it must be.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import subprocess
import sys
import time
from typing import Final

from rig.client.wait import until
from rig.errors import RigError
from rig.rig import CHECKOUT
from support.switch_faults import FAULTS, a_running_pod, befallen, require_containerd
from support.switch_stage import SwitchStage, switch_stage

LOGS: Final = CHECKOUT / ".cache/test/rig-logs-soak-switch"
WITHIN_S: Final = 10
_REBOOT: Final = "a reboot"
_NOTHING: Final = "nothing"
_LATEST_KILL_S: Final = 9.0
_FAILED: Final = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak switch", description="switches a node while things break")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1, help="of the first round; the next one has the next")
    given = parser.parse_args()
    wrong = 0
    with switch_stage(say=print, keep_logs=LOGS) as stage:
        stage.install()
        for seed in range(given.seed, given.seed + given.rounds):
            began_s = time.monotonic()
            try:
                what = one_round(stage, random.Random(seed))  # noqa: S311  a seeded choice
            except (AssertionError, RigError) as error:
                wrong += 1
                what = f"WRONG: {error}"
            _say(f"seed {seed}: {what} ({time.monotonic() - began_s:.1f} s)")
    _say(f"{given.rounds - wrong} of {given.rounds} rounds were as they must be")
    return _FAILED if wrong else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def one_round(stage: SwitchStage, choice: random.Random) -> str:
    """What befell it; raises where the node is not as it must be."""
    befalls = choice.choice([*FAULTS, _REBOOT, _NOTHING])
    is_killed, kill_after_s = choice.random() < 0.5 and befalls != _REBOOT, choice.uniform(0, _LATEST_KILL_S)
    pod, command = a_running_pod(stage)
    processes = stage.processes(command)
    assert len(processes) == 1
    with contextlib.ExitStack() as stack:
        if befalls in FAULTS:
            stack.enter_context(befallen(stage, FAULTS[befalls]))
        switching = stage.started("switch-on", "--within", str(WITHIN_S))
        if befalls == _REBOOT:
            time.sleep(choice.uniform(0, _LATEST_KILL_S))
            stage.reboot()
            switching.wait(60)
        else:
            _ended(stage, switching, kill_after_s if is_killed else None)
            assert stage.processes(command) == processes, "a container is not the one that it was"
        what = _outcome(stage, befalls)
    if stage.status().switch == "confirmed":
        done = stage.node("switch-off")
        assert done.returncode == 0, done.stderr
    require_containerd(stage)
    if befalls != _REBOOT:
        assert stage.processes(command) == processes, "a container is not the one that it was"
    pod.delete()
    killed = "" if not is_killed else f", killed after {kill_after_s:.1f} s"
    return f"{befalls}{killed}: {what}"


def _ended(stage: SwitchStage, switching: subprocess.Popen[bytes], kill_after_s: float | None) -> None:
    try:
        switching.wait(timeout=kill_after_s or 120)
    except subprocess.TimeoutExpired:
        stage.kill(switching)


def _outcome(stage: SwitchStage, befalls: str) -> str:
    """Once the time has run out: in force where nothing befell the node, or as it was before."""
    until("the switch stands", lambda: "armed" if stage.status().switch in {"armed", "turning-back"} else None, 60)
    state = stage.status().switch
    if befalls in FAULTS:
        assert state != "confirmed", f"{befalls}, and the switch was confirmed"
    if state != "confirmed":
        require_containerd(stage)
        return "as before"
    return "in force"


if __name__ == "__main__":
    raise SystemExit(main())
