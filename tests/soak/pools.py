"""Native pods and shares come and go on the same cards for ten minutes; no card is ever in both pools.

    make soak-pools              # 10 minutes
    tools/named soak pools --minutes 2 --seed 7

One node, a real kubelet, NVIDIA's device plugin, simulated cards, all of our daemons. Now and then the scheduler, the
advertiser or crishim is killed and restarted. A witness continuously compares kubelet's answers with the runtime's
list. At the end all pods go, and kubelet must have all cards.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from soak.harness import ended, options, say, steps
from support.chain_stage import Chain
from support.pools_stage import NODE, Churn, Witness, pooled, wait_all_kubelets

LOOKS: Final = 10
KILL_EVERY: Final = 12


def main() -> int:
    asked = options("pools", minutes=10.0, seed=1)
    with tempfile.TemporaryDirectory() as root, pooled(Path(root), say=say) as chain:
        churn = Churn(chain, seed=asked.seed)
        with Witness(chain) as witness:
            kills = _work(chain, churn, witness, asked.minutes)
            churn.end()
            wait_all_kubelets(chain)
    proved = {"no native pod had a card": witness.native_seen, "no share was on one": witness.shared_seen}
    figures = {"pods": churn.made, "ran": churn.ran, "kills": kills, "samples": witness.samples}
    return ended("pools", witness.wrong, proved, **figures)


def _work(chain: Chain, churn: Churn, witness: Witness, minutes: float) -> int:
    """The number of kills."""
    kills = 0
    for step in steps(minutes, lambda: f"{churn.made} pods, {churn.ran} ran, {witness.samples} samples"):
        if witness.wrong:
            break
        churn.step()
        witness.wait_looks(LOOKS)
        if step % KILL_EVERY == 0:
            chain.restart(("scheduler", "advertiser", "crishim")[kills % 3], chain.rig.nodes[NODE])
            kills += 1
    return kills


if __name__ == "__main__":
    raise SystemExit(main())
