"""Native pods and shares come and go on the same cards for ten minutes; no card is ever in both.

    make soak-pools              # 10 minutes
    tools/named soak pools --minutes 2 --seed 7

One node, a real kubelet, NVIDIA's device plugin, simulated cards, all of our daemons. Now and then the scheduler, the
advertiser or crishim is killed and started again. A witness compares kubelet's answers with the runtime's list all the
time. At the end all pods go, and kubelet must have all cards. It prints a line each minute and, as its last line, one
JSON object. Exit status: 0 when no card was in both, 3 when one was.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from support.pools_stage import NODE, Churn, Pools, Witness, pooled

EXIT_WRONG: Final = 3
LOOKS: Final = 10
KILL_EVERY: Final = 12
_MINUTE_S: Final = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak pools", description="native pods and shares on the same cards")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long, by default 10")
    parser.add_argument("--seed", type=int, default=1, help="of what comes and goes, by default 1")
    said = parser.parse_args()
    with tempfile.TemporaryDirectory() as root, pooled(Path(root), say=_say) as pools:
        churn = Churn(pools, seed=said.seed)
        with Witness(pools) as witness:
            kills = _work(pools, churn, witness, said.minutes * _MINUTE_S)
            churn.end()
            pools.wait_all_kubelets()
    _say(f"{churn.made} pods, {churn.ran} of them ran; {kills} kills; wrong: {witness.wrong[:5]}")
    figures = {
        "pods": churn.made,
        "ran": churn.ran,
        "kills": kills,
        "samples": witness.samples,
        "with_native": witness.native_seen,
        "with_shares": witness.shared_seen,
        "wrong": len(witness.wrong),
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    return EXIT_WRONG if witness.wrong or not witness.shared_seen or not witness.native_seen else 0


def _work(pools: Pools, churn: Churn, witness: Witness, seconds: float) -> int:
    until, told, steps, kills = time.monotonic() + seconds, time.monotonic(), 0, 0
    while time.monotonic() < until and not witness.wrong:
        churn.step()
        witness.wait_looks(LOOKS)
        steps += 1
        if steps % KILL_EVERY == 0:
            _kill(pools, kills)
            kills += 1
        if time.monotonic() - told >= _MINUTE_S:
            told = time.monotonic()
            _say(f"{churn.made} pods, {churn.ran} of them ran, {kills} kills, {witness.samples} samples")
    return kills


def _kill(pools: Pools, turn: int) -> None:
    """Each of them in turn, and started again at once."""
    if turn % 3 == 0:
        pools.chain.scheduler.kill()
        pools.chain.scheduler.start()
        return
    advertiser, crishim = pools.chain.advertisers[NODE].started[-1], pools.chain.rig.nodes[NODE].daemons["crishim"]
    component = advertiser if turn % 3 == 1 else crishim
    component.kill()
    component.start()
    component.wait_ready()


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
