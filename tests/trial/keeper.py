"""A cluster for a person, kept by a separate process, which survives the shell that started it.

`up` starts the keeper and waits until it writes `up.json` into its run folder, or ends. `down` sends the keeper SIGTERM
and waits until it has released its slot. A keeper that was killed needs no `down`: its rig died with it, and the next
rig or the next `down` cleans up.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rig.client.wait import until
from rig.errors import RigError
from rig.machine import slots
from rig.machine.cleanup import clean
from rig.programs import ensure
from rig.rig import CHECKOUT
from trial.cluster import Trial, trial

Say = Callable[[str], None]
_FILE: Final = "up.json"
_LOOK_EVERY_S: Final = 0.1


@dataclass(frozen=True)
class Up:
    """The facts that a person needs about a running rig."""

    slot: int
    keeper: int
    ways_in: dict[str, str]
    """The prefix that makes a command run on a node, by the node's name."""
    kubeconfig: str
    programs: list[str]
    """The folders of kubectl and helm."""
    logs: str
    registry: str


def up(nodes: int, say: Say) -> Up:
    """Start a keeper, and return when its rig serves."""
    say(f"starting a rig with {nodes} node(s)")
    with tempfile.TemporaryFile() as said:
        keeper = subprocess.Popen(
            [sys.executable, "-P", "-m", "trial", "keep", str(nodes)],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
            cwd=CHECKOUT / "tests",
        )
        try:
            return _wait_until_up(keeper, said.fileno(), say)
        except BaseException:
            keeper.send_signal(signal.SIGTERM)
            keeper.wait()
            raise


def keep(nodes: int, say: Say) -> None:
    """The keeper itself: holds a rig until it is stopped."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    helm = ensure("helm", say=say)["helm"]
    with trial([f"gpu-{number}" for number in range(1, nodes + 1)], say=say) as made:
        _announce(made, helm)
        while True:
            signal.pause()


def down(say: Say, only: int | None = None) -> list[int]:
    """Stop every running rig, or the one with that slot; clean up after dead ones. Returns the freed slots."""
    done = slots.sweep(clean)
    for found in all_up():
        if only in (None, found.slot):
            say(f"stopping rig {found.slot}")
            _end(found)
            done.append(found.slot)
    if only is not None and only not in done:
        raise RigError(f"no rig {only} is up; there is: {', '.join(str(each.slot) for each in all_up()) or 'none'}")
    return done


def all_up() -> list[Up]:
    """Running rigs of people; those of tests are left out."""
    files = [folder / _FILE for folder in slots.owners().values()]
    return [Up(**json.loads(file.read_text())) for file in files if file.exists()]


def _announce(made: Trial, helm: Path) -> None:
    """One rename, so that no reader sees an incomplete file."""
    rig = made.rig
    found = Up(
        slot=rig.addresses.slot,
        keeper=os.getpid(),
        ways_in={name: " ".join(machine.way_in) for name, machine in made.machines.items()},
        kubeconfig=str(rig.cluster.kubectl.kubeconfig),
        programs=[str(program.parent) for program in (rig.programs["kubectl"], helm)],
        logs=str(rig.logs),
        registry=rig.registry.address,
    )
    draft = rig.folder / f"{_FILE}.new"
    draft.write_text(json.dumps(asdict(found)))
    draft.rename(rig.folder / _FILE)


def _wait_until_up(keeper: subprocess.Popen[bytes], said: int, say: Say) -> Up:
    seen = 0
    while True:
        ended = keeper.poll() is not None
        fresh = os.pread(said, 1 << 20, seen)
        seen += len(fresh)
        for line in fresh.decode(errors="replace").splitlines():
            say(line)
        if mine := [found for found in all_up() if found.keeper == keeper.pid]:
            return mine[0]
        if ended:
            raise RigError(f"the rig did not start (exit {keeper.returncode}); what it said is above")
        time.sleep(_LOOK_EVERY_S)


def _end(found: Up) -> None:
    """The keeper releases its slot last, so a free slot means that everything is gone."""
    try:
        os.kill(found.keeper, signal.SIGTERM)
    except ProcessLookupError:
        slots.sweep(clean)

    def why_not() -> str | None:
        return f"it is up; kill -9 {found.keeper}" if found.slot in slots.owners() else None

    until(f"rig {found.slot} is down", why_not)


def _stop(number: int, _: object) -> None:
    raise SystemExit(128 + number)
