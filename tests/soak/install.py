"""What the page "Install" says, several times in a row on two nodes; the nodes and the cluster are each time as before.

    make soak-install                    # 5 rounds
    tools/named soak install --rounds 1 --nodes 1 --from HEAD~20

A round installs the chart and the images of an earlier commit, by default the one before this checkout's, brings all
nodes into force, the first one drained, runs a kernel in a pod that shares a card on each, goes to this checkout with
these pods running, and takes everything out. No container of a user may be restarted, and nothing may be left on the
nodes or in the cluster.
From `helm install` to a kernel on every node it may take 90 s.

stdout: one JSON object with the seconds of each leg of each round, and what kept the machine busy besides.
Exit status: 0 done, 2 no such commit, 3 a round was not as it must be, or took too long.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.measuring.surroundings import time_now
from rig.errors import RigError
from rig.rig import CHECKOUT
from support.install_story import FIRST_KERNELS, story
from support.releases import clone, commit_of, release
from support.story_stage import StoryStage, reader_of
from trial.cluster import Trial, trial

LOGS: Final = CHECKOUT / ".cache/test/rig-logs-soak-install"
FIRST_KERNELS_WITHIN_S: Final = 90.0
_FAILED: Final = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak install", description="installs and takes away, again and again")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--from", dest="before", default="HEAD~1", help="the commit that is installed first")
    given = parser.parse_args()
    before = commit_of(given.before)
    if before is None or before == commit_of("HEAD"):
        parser.error(f"--from {given.before} is {'this' if before else 'no'} commit here; name an earlier one")
    names = [f"gpu-{number}" for number in range(1, given.nodes + 1)]
    rounds: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder, trial(names, say=_say, keep_logs=LOGS) as made:
        stage = _stage(made, Path(folder), before)
        for number in range(1, given.rounds + 1):
            _say(f"round {number}")
            try:
                rounds.append(_round(stage))
            except (AssertionError, RigError, subprocess.TimeoutExpired) as error:
                _say("\n".join([f"WRONG: {error}", *error.__notes__]))
                break
        versions = [each.version for each in stage.releases]
    late = [each for each in rounds if each[FIRST_KERNELS] > FIRST_KERNELS_WITHIN_S]
    for each in late:
        _say(f"LATE: {FIRST_KERNELS}: {each[FIRST_KERNELS]} s, and {FIRST_KERNELS_WITHIN_S:.0f} s may be: {each}")
    told = {"nodes": given.nodes, "versions": versions, "processors": os.cpu_count(), "wished": given.rounds}
    sys.stdout.write(json.dumps({**told, "late": len(late), "rounds": rounds}) + "\n")
    return 0 if len(rounds) == given.rounds and not late else _FAILED


def _stage(made: Trial, folder: Path, before: str) -> StoryStage:
    """The release of the commit `before`, and after it that of this checkout."""
    checkouts = (clone(before, folder / "before"), CHECKOUT)
    releases = [release(made.rig, each, folder / f"release-{at}") for at, each in enumerate(checkouts)]
    reader = reader_of(made, folder, home=folder)
    programs = (str(Path(sys.executable).parent), reader.environment["PATH"])
    reader.environment["PATH"] = ":".join(programs)
    return StoryStage(made, reader, releases)


def _round(stage: StoryStage) -> dict[str, float]:
    """Its legs, the load before it, and the part of the processors' time that went to other machines meanwhile."""
    load, before = os.getloadavg()[0], time_now()
    legs = story(stage, lambda line: _say(f"  {line}"))
    return {**legs, "load": round(load, 2), "stolen": round(time_now().stolen_since(before), 3)}


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main())
