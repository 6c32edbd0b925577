"""A node tells the cluster what cards it has: `partage nodes` shows them, one falls off the bus, and it comes back.

The cluster is real, the cards are simulated. What breaks them is what a person would type to break them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

from rig.nodes.node import NodeSettings
from rig.rig import Rig, RigSettings, running
from support.advertiser_stage import QUIET_S, AdvertiserStage
from support.simgpu_stage import DRIVER, install_driver, simgpud

NODE: Final = "n1"
CARDS: Final = ("h100", "h100", "l4")
PARTAGE: Final = (sys.executable, "-P", "-m", "partage_cli")
PATCHES: Final = "partage_advertiser_patches_total"
OK: Final = ("ok",) * len(CARDS)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def give_cards(rig: Rig) -> None:
    node = rig.nodes[NODE]
    install_driver(node.machine, CARDS)
    driver = node.daemon(simgpud())
    driver.start()
    driver.wait_ready()


def show(stage: AdvertiserStage) -> None:
    say("   $ partage nodes")
    for line in run((*PARTAGE, "nodes", "--kubeconfig", str(stage.rig.cluster.kubectl.kubeconfig))).splitlines():
        say(f"   | {line}")


def break_it(stage: AdvertiserStage, *fault: str) -> None:
    """Typed on the node, whose driver is the simulated node that it has."""
    folder, _, name = DRIVER.rpartition("/")
    say(f"   {stage.name}$ {' '.join(('partage', 'simgpu', 'inject', '--dir', folder, name, *fault))}")
    run((*stage.machine.way_in, *PARTAGE, "simgpu", "inject", "--dir", folder, name, *fault))


def run(argv: Sequence[str]) -> str:
    """A command to its end, which must be a good one."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"demo: {' '.join(argv)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def hear(stage: AdvertiserStage, reason: str) -> None:
    stage.wait_event(reason, "")
    message = next(event["message"] for event in stage.events() if event["reason"] == reason)
    say(f"   the Node has an Event:  {reason}  {message}")


def show_cards(stage: AdvertiserStage) -> None:
    stage.wait_healths(*OK)
    say(f"\n2. Its advertiser has told the cluster of {len(CARDS)} cards, and renews a Lease every 10 s")
    show(stage)


def lose_one(stage: AdvertiserStage) -> None:
    say("\n3. The first card falls off the bus (XID 79)")
    began = time.monotonic()
    break_it(stage, "xid", "0", "79")
    stage.wait_healths("lost", *OK[1:])
    say(f"   the cluster knows {time.monotonic() - began:.1f} s after that was typed; nobody asked")
    show(stage)
    hear(stage, "CardLost")


def mend_it(stage: AdvertiserStage) -> None:
    say(f"\n4. The card is back. It is watched for a while ({QUIET_S} s here, a minute by default)")
    break_it(stage, "restore", "0")
    stage.wait_healths("degraded: came back", *OK[1:])
    show(stage)
    stage.wait_healths(*OK)
    show(stage)
    hear(stage, "CardRecovered")


def main() -> int:
    """The cards of one node, from their first mention to their end."""
    say("\nWhat a node has, as the cluster sees it\n")
    started = time.monotonic()
    with running(RigSettings(nodes={NODE: NodeSettings()}), say=say) as rig:
        stage = AdvertiserStage(rig, NODE)
        say(f"1. A cluster is ready after {time.monotonic() - started:.1f} s; its node has a driver and cards")
        give_cards(rig)
        advertiser = stage.start()
        show_cards(stage)
        lose_one(stage)
        mend_it(stage)
        written = sum(value for name, value in stage.figures().items() if name.startswith(PATCHES))
        advertiser.stop()
    say(f"\n   The annotation was written {written:.0f} times in all. A cluster for yourself: make rig-up")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
