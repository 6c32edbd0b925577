"""What the page "Install" says, several times in a row on two nodes; the nodes and the cluster are each time as before.

    make soak-install                    # 5 rounds
    tools/named soak install --rounds 1 --nodes 1

A round installs the chart with the images of this checkout, brings all nodes into force, runs a kernel in a pod that
shares a card on each, goes to another version with these pods running, and takes everything out. No container of a
user may be restarted, and nothing may be left on the nodes or in the cluster.

stdout: one JSON object with the seconds of each leg of each round.
Exit status: 0 done, 3 a round was not as it must be.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from rig.errors import RigError
from rig.rig import CHECKOUT
from support.install_story import story
from support.story_stage import story_stage

LOGS: Final = CHECKOUT / ".cache/test/rig-logs-soak-install"
_FAILED: Final = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak install", description="installs and takes away, again and again")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=2)
    given = parser.parse_args()
    names = [f"n{number}" for number in range(1, given.nodes + 1)]
    rounds: list[dict[str, float]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        story_stage(Path(folder), nodes=names, releases=2, say=_say, keep_logs=LOGS) as stage,
    ):
        for number in range(1, given.rounds + 1):
            _say(f"round {number}")
            try:
                rounds.append(dict(story(stage, lambda line: _say(f"  {line}"))))
            except (AssertionError, RigError) as error:
                _say(f"WRONG: {error}\n{stage.told()}")
                break
    done = {"nodes": given.nodes, "processors": os.cpu_count(), "wished": given.rounds, "rounds": rounds}
    sys.stdout.write(json.dumps(done) + "\n")
    return 0 if len(rounds) == given.rounds else _FAILED


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main())
