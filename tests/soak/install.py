"""The page "Install", several times in a row on two nodes; each time nodes and cluster end as they were.

    make soak-install                    # 5 rounds
    tools/named soak install --rounds 1 --nodes 1 --before HEAD~20

A round installs the chart and the images of an earlier commit, by default the one before this checkout's, brings all
nodes into force, the first one drained, runs a kernel in a pod that shares a card on each, upgrades to this checkout
with these pods running, and uninstalls everything. No container of a user may be restarted, and nothing may be left on
the nodes or in the cluster. From `helm install` to a kernel on every node it may take 90 s.

The last line has the seconds of each leg of each round, and the machine's other load.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.measuring.surroundings import time_now
from rig.errors import RigError
from rig.rig import CHECKOUT
from soak.harness import ended, options, say
from support.install_story import FIRST_KERNELS, story
from support.releases import clone, commit_of, release
from support.story_stage import StoryStage, reader_of
from trial.cluster import Trial, trial

LOGS: Final = CHECKOUT / ".cache/test/rig-logs-soak-install"
FIRST_KERNELS_WITHIN_S: Final = 90.0


def main() -> int:
    asked = options("install", rounds=5, nodes=2, before="HEAD~1")
    before = commit_of(asked.before)
    if before is None or before == commit_of("HEAD"):
        raise SystemExit(f"--before {asked.before} is {'this' if before else 'no'} commit here; name an earlier one")
    names = [f"gpu-{number}" for number in range(1, asked.nodes + 1)]
    rounds, wrong = list[dict[str, float]](), list[str]()
    with tempfile.TemporaryDirectory() as folder, trial(names, say=say, keep_logs=LOGS) as made:
        stage = _stage(made, Path(folder), before)
        for number in range(1, asked.rounds + 1):
            say(f"round {number}")
            try:
                rounds.append(_round(stage))
            except (AssertionError, RigError, subprocess.TimeoutExpired) as error:
                wrong.append("\n".join([f"round {number}: {error}", *error.__notes__]))
                break
        versions = [each.version for each in stage.releases]
    wrong += [f"late: {FIRST_KERNELS}: {each}" for each in rounds if each[FIRST_KERNELS] > FIRST_KERNELS_WITHIN_S]
    figures = {"nodes": asked.nodes, "versions": versions, "processors": os.cpu_count()}
    return ended("install", wrong, rounds=rounds, **figures)


def _stage(made: Trial, folder: Path, before: str) -> StoryStage:
    """The release of the commit `before`, and after it that of this checkout."""
    checkouts = (clone(before, folder / "before"), CHECKOUT)
    releases = [release(made.rig, each, folder / f"release-{at}") for at, each in enumerate(checkouts)]
    reader = reader_of(made, folder, home=folder)
    programs = (str(Path(sys.executable).parent), reader.environment["PATH"])
    reader.environment["PATH"] = ":".join(programs)
    return StoryStage(made, reader, releases)


def _round(stage: StoryStage) -> dict[str, float]:
    """Seconds of its legs, the load before it, and the steal time meanwhile as a part of the processors' time."""
    load, before = os.getloadavg()[0], time_now()
    legs = story(stage, lambda line: say(f"  {line}"))
    return {**legs, "load": round(load, 2), "stolen": round(time_now().stolen_since(before), 3)}


if __name__ == "__main__":
    raise SystemExit(main())
