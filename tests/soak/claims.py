"""Claims come and go for twenty minutes while the driver, the broker and kubelet are killed; no budget is exceeded.

    make soak-claims             # 20 minutes
    tools/named soak claims --minutes 2 --seed 7

One node, a real kubelet straight at containerd, kube-scheduler, simulated cards. Pods have claims of their own, or a
named one together; their programs take memory up to their limit. After each step a witness compares what the API server
allocated, what is on record, and what the broker keeps and counts. At the end all pods go, and nothing may be left in
the folders of records, of CDI, of the broker's containers. It prints a line each minute and, as its last line, one JSON
object. Exit status: 0 when all of it held, 3 when not.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from partage_isolation.store.folders import PARENT
from partage_isolation.wire.client import ControlError
from partage_plugins.codecs.quantity import parse_whole_quantity
from rig.client.pods import Pod
from rig.client.resources import RESOURCE_CLAIMS, Json
from rig.client.wait import until
from rig.identity.people import TEAM
from soak.harness import ended, options, say, steps
from support.dra_stage import DraStage, claimed, devices, request
from support.isolation_stage import SERVING, told_by

MOST_PODS: Final = 8
KILL_EVERY: Final = 8
TOGETHER: Final = "together"
RUNS_WITHIN_S: Final = 180.0
_SETTLES_S: Final = 5.0
_MOST: Final = 1 << 62
_SHARES: Final = (100, 200, 300)
_MEMORIES: Final = ("1Gi", "2Gi")


@dataclass
class Churn:
    stage: DraStage
    chance: random.Random
    living: list[Pod] = field(default_factory=list[Pod])
    uids: set[str] = field(default_factory=set[str])
    made: int = 0
    ran: int = 0
    shared: int = 0
    asked: int = 0
    """How often a program answered that was told to take memory."""

    def step(self) -> None:
        """One pod comes or goes."""
        if self.living and (len(self.living) >= MOST_PODS or self.chance.random() < 0.4):
            self.end(self.chance.choice(self.living))
            return
        self.made += 1
        name = f"pod-{self.made}"
        if self.chance.random() < 0.3:
            self.shared += 1
            pod = self.stage.pod(name, claim=TOGETHER)
        else:
            asked = request(self.chance.choice(_SHARES), self.chance.choice(_MEMORIES))
            pod = self.stage.pod(name, devices(asked, limit_milli=self.chance.choice((500, 1000))))
        self.living.append(pod)

    def use(self) -> None:
        """Programs that run take memory, as far as they get it."""
        for pod in self.living:
            if pod.refresh()["status"]["phase"] == "Running":
                self.asked += not pod.tried(SERVING[0], "ask", f"take {self.chance.choice((50, 300, 900))}").status

    def end(self, pod: Pod) -> None:
        self.living.remove(pod)
        self.ran += pod.refresh()["status"]["phase"] == "Running"
        pod.delete(grace_s=self.chance.choice((0, 1)))

    def wait_all_run(self) -> None:
        for pod in self.living:
            pod.wait_running(RUNS_WITHIN_S)


def wrongs(stage: DraStage) -> Iterator[str]:
    """What is not as it should be, now."""
    claims = {each["metadata"]["uid"]: each for each in stage.rig.cluster.api.list(RESOURCE_CLAIMS.at(TEAM))}
    sums = dict[str, int]()
    for told in told_by(stage.machine).containers:
        record, claim = stage.record(told.pod.uid), claims.get(told.pod.uid)
        if record is None:
            yield f"claim {told.pod.name} is served and not on record"
            continue
        grants = {grant.card: grant for grant in record.grants}
        for card in told.cards:
            if (card.granted_bytes, card.granted_share_milli) != (
                grants[card.card].memory_bytes,
                grants[card.card].share_milli,
            ):
                yield f"claim {told.pod.name} has another limit than its record says"
            if card.charged_bytes > card.limit_bytes:
                yield f"claim {told.pod.name} is charged {card.charged_bytes} of {card.limit_bytes} bytes"
            sums[card.card] = sums.get(card.card, 0) + card.share_milli
        if claim is not None and "allocation" in claim.get("status", {}):
            consumed = sum(map(_share, claim["status"]["allocation"]["devices"]["results"]))
            if consumed != sum(grant.share_milli for grant in record.grants):
                yield f"claim {told.pod.name} is on record with another share than it was allocated"
    for card_id, milli in sums.items():
        if milli > 1000:
            yield f"card {card_id} is promised {milli} milli"


def confirmed(stage: DraStage) -> set[str]:
    """What stays: the driver and the broker do one thing after the other."""
    with contextlib.suppress(ControlError):  # the broker is coming up
        found = set(wrongs(stage))
        if found:
            time.sleep(_SETTLES_S)
            return found & set(wrongs(stage))
    return set()


def _share(result: Json) -> int:
    return parse_whole_quantity(result["consumedCapacity"]["share"], path="share", largest=_MOST)


def kill(stage: DraStage, turn: int) -> None:
    """Each of them in turn, and started again."""
    if turn % 3 == 0:
        stage.kill_driver()
        stage.start_driver()
    elif turn % 3 == 1:
        stage.restart_broker()
    else:
        stage.restart_kubelet()


def left(stage: DraStage) -> dict[str, Any]:
    folder = stage.root / PARENT
    containers = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return {
        "records": [path.name for path in (stage.root / "run/partage/dra/claims").glob("*")],
        "specs": stage.specs(),
        "containers": containers,
        "served": [each.pod.name for each in told_by(stage.machine).containers],
    }


def main() -> int:
    asked = options("claims", minutes=20.0, seed=1)
    with claimed(say=say) as stage:
        stage.wait_published()
        stage.claim(TOGETHER, devices(request(200, "4Gi")))
        churn = Churn(stage, random.Random(asked.seed))  # noqa: S311  nothing is kept secret
        kills, found = _work(stage, churn, asked.minutes)
        stage.clear()
        until("nothing is left", lambda: str(left(stage)) if any(left(stage).values()) else None, RUNS_WITHIN_S)
    done = {"ran": churn.ran, "shared": churn.shared, "asked": churn.asked}
    proved = {f"no pod {name}": count for name, count in done.items()}
    return ended("claims", found, proved, pods=churn.made, kills=kills, **done)


def _work(stage: DraStage, churn: Churn, minutes: float) -> tuple[int, list[str]]:
    kills, found = 0, list[str]()
    for step in steps(minutes, lambda: f"{churn.made} pods, {churn.ran} of them ran"):
        churn.step()
        if step % KILL_EVERY == 0:
            kill(stage, kills)
            kills += 1
            churn.wait_all_run()
        churn.use()
        found += confirmed(stage)
        if found:
            break
    return kills, found


if __name__ == "__main__":
    raise SystemExit(main())
