"""A node is switched many times while components fail at random: it always ends up ready with its runtime.

    make soak-switch                     # 50 rounds from seed 1, about an hour on two cores
    tools/named soak switch --rounds 5 --seed 7

A round has at most one fault of those that `make test` has once each, or a reboot; and the command may be killed, at a
moment that the seed chooses. The rollback starts after 10 s. Then the node must be ready with containerd, start a pod,
and have the containers that it had. After a fault the switch must not be confirmed; without one it is, if the machine
is quick enough for 10 s.

The last line has the figures as JSON: rounds by fault, how many ended in force, those that were wrong, and the longest
time from the command to a node that was ready with containerd again and had started a pod.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from rig.client.wait import until
from rig.errors import RigError
from rig.rig import CHECKOUT
from soak.harness import ended, options, say
from support.switch_faults import FAULTS, a_running_pod, befallen, require_containerd
from support.switch_stage import SwitchStage, switch_stage

LOGS: Final = CHECKOUT / ".cache/test/rig-logs-soak-switch"
WITHIN_S: Final = 10
_REBOOT: Final = "a reboot"
_NOTHING: Final = "nothing"
_LATEST_KILL_S: Final = 9.0


def main() -> int:
    asked = options("switch", rounds=50, seed=1)
    done, wrong = list[Round](), list[str]()
    with switch_stage(say=say, keep_logs=LOGS) as stage:
        stage.install()
        for seed in range(asked.seed, asked.seed + asked.rounds):
            began_s = time.monotonic()
            try:
                done.append(one_round(stage, random.Random(seed)))  # noqa: S311  a seeded choice
            except (AssertionError, RigError) as error:
                wrong.append(f"seed {seed}: {error}")
                say(f"WRONG: {wrong[-1]}")
            else:
                say(f"seed {seed}: {done[-1]} ({time.monotonic() - began_s:.1f} s)")
    return ended("switch", wrong, **_figures(done))


@dataclass(frozen=True)
class Round:
    befell: str
    killed_after_s: float | None
    """When the command was killed; None: it was not."""
    back_after_s: float | None
    """When it was ready with containerd and had started a pod; None: crishim was in force."""

    def __str__(self) -> str:
        killed = "" if self.killed_after_s is None else f", killed after {self.killed_after_s:.1f} s"
        back = "in force" if self.back_after_s is None else f"as before after {self.back_after_s:.1f} s"
        return f"{self.befell}{killed}: {back}"


def _figures(rounds: list[Round]) -> dict[str, Any]:
    return {
        "rounds": dict(sorted(Counter(each.befell for each in rounds).items())),
        "killed": sum(each.killed_after_s is not None for each in rounds),
        "in_force": sum(each.back_after_s is None for each in rounds),
        "slowest_back_s": round(max((each.back_after_s or 0.0 for each in rounds), default=0.0), 1),
    }


def one_round(stage: SwitchStage, choice: random.Random) -> Round:
    """Raises if the node is not as it must be."""
    befalls = choice.choice([*FAULTS, _REBOOT, _NOTHING])
    is_killed, kill_after_s = choice.random() < 0.5 and befalls != _REBOOT, choice.uniform(0, _LATEST_KILL_S)
    pod, command = a_running_pod(stage)
    processes = stage.processes(command)
    assert len(processes) == 1
    with contextlib.ExitStack() as stack:
        if befalls in FAULTS:
            stack.enter_context(befallen(stage, FAULTS[befalls]))
        began_s = time.monotonic()
        switching = stage.started("switch-on", "--within", str(WITHIN_S))
        if befalls == _REBOOT:
            time.sleep(choice.uniform(0, _LATEST_KILL_S))
            stage.reboot()
            switching.wait(60)
        else:
            _ended(stage, switching, kill_after_s if is_killed else None)
            assert stage.processes(command) == processes, "a container is not the one that it was"
        back_after_s = time.monotonic() - began_s if _is_back(stage, befalls) else None
    if stage.status().switch == "confirmed":
        done = stage.node("switch-off")
        assert done.returncode == 0, done.stderr
    require_containerd(stage)
    if befalls != _REBOOT:
        assert stage.processes(command) == processes, "a container is not the one that it was"
    pod.delete()
    return Round(befalls, kill_after_s if is_killed else None, back_after_s)


def _ended(stage: SwitchStage, switching: subprocess.Popen[bytes], kill_after_s: float | None) -> None:
    try:
        switching.wait(timeout=kill_after_s or 120)
    except subprocess.TimeoutExpired:
        stage.kill(switching)


def _is_back(stage: SwitchStage, befalls: str) -> bool:
    """Whether the node is as it was before, once the time has run out."""
    until("the switch stands", lambda: "armed" if stage.status().switch in {"armed", "turning-back"} else None, 60)
    state = stage.status().switch
    if befalls in FAULTS:
        assert state != "confirmed", f"{befalls}, and the switch was confirmed"
    if state == "confirmed":
        return False
    require_containerd(stage)
    return True


if __name__ == "__main__":
    raise SystemExit(main())
