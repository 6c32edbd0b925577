"""Whether kube-scheduler and we say the same of where pods may go: 2,000 pods that wait, in clusters by chance.

    make soak-feasible                              # 40 clusters of 50 pods, about five minutes
    tools/named soak feasible --clusters 4 --seed 100

The real kube-scheduler tells by an extender which nodes its filters left over; we are asked about the same objects, as
the API server has them. Pods that differ are printed with all that was said of them. The last line is one JSON object.
Exit status: 0 when both agree of every pod, 3 when not.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from rig.control.plane import control_plane
from support.feasible.comparing import Comparison, Outcome, settings_for
from support.feasible.recording import recording

EXIT_DIFFERS: Final = 3
CLUSTERS: Final = 40


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak feasible", description="compares with the real kube-scheduler")
    parser.add_argument("--clusters", type=int, default=CLUSTERS, help=f"how many, by default {CLUSTERS}")
    parser.add_argument("--seed", type=int, default=0, help="of the first cluster; each further one has the next")
    asked = parser.parse_args()
    with (
        recording() as recorder,
        control_plane(settings_for(recorder), say=_say) as control,
        tempfile.TemporaryDirectory() as root,
    ):
        comparison = Comparison(control, recorder, Path(root))
        comparison.furnish()
        for seed in range(asked.seed, asked.seed + asked.clusters):
            comparison.compare(seed)
            _say(f"cluster {seed}: {comparison.outcome.pairs} pods, {len(comparison.outcome.differences)} differ")
        comparison.close()
    return _told(comparison.outcome)


def _told(outcome: Outcome) -> int:
    for difference in outcome.differences:
        _say(str(difference))
    for reason, count in outcome.reasons.most_common():
        _say(f"{count:8} {reason}")
    found = {
        "soak": "feasible",
        "pairs": outcome.pairs,
        "differences": len(outcome.differences),
        "nowhere": outcome.sizes[0],
        "somewhere": outcome.telling,
    }
    _say(json.dumps(found))
    return EXIT_DIFFERS if outcome.differences else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
