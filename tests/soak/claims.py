"""Claims come and go while every component of node and cluster is killed; no budget is exceeded.

    make soak-claims             # 20 minutes
    tools/named soak claims --minutes 2 --seed 7

One node, a real kubelet directly at containerd, kube-scheduler, simulated cards. Pods have their own claims, or share a
named one; their programs allocate memory up to their limit. Now and then one to three of driver, broker, kubelet,
containerd, kube-scheduler and API server are killed together, in random order, and started in another. After each step
a witness compares the API server's allocations with the records, the CDI files, and the broker's limits and accounts.
At the end all pods go, and no records, CDI files, rows, limits or folders with sockets may be left. It prints a line
each minute and, as its last line, one JSON object. Exit status: 0 when all of it held, 3 when not.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from partage_base.peers import boot_id
from partage_isolation.store.files import ROWS
from partage_isolation.store.folders import PARENT
from partage_isolation.store.rows_file import RowsFile
from partage_isolation.store.specs import BUDGETS_FOLDER
from partage_isolation.store.specs import FOLDER as LIMITS_FOLDER
from partage_isolation.wire.messages import ContainerReport
from partage_plugins.api.claims import ClaimRecord
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.places import CLAIMS_FOLDER
from partage_plugins.codecs.quantity import parse_whole_quantity
from rig.client.pods import Pod
from rig.client.resources import RESOURCE_CLAIMS, Json
from rig.client.wait import until
from rig.errors import ComponentFailed
from rig.identity.people import TEAM
from rig.machine.components import Component
from soak.harness import ended, options, say, steps
from support.claim_objects import devices, request
from support.dra_stage import DraStage, claimed
from support.isolation_stage import SERVING, told_by

MOST_PODS: Final = 8
KILL_EVERY: Final = 8
MOST_KILLED: Final = 3
"""Components at once."""
TOGETHER: Final = "together"
RUNS_WITHIN_S: Final = 180.0
OURS: Final = ("driver", "broker")
_STARTS: Final = 20
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
    """How often a program answered an order to allocate memory."""

    def step(self) -> None:
        """Create or delete one pod."""
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
        """Running programs allocate memory, as far as they can."""
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
    """Inconsistencies at this moment."""
    claims = {each["metadata"]["uid"]: each for each in stage.rig.cluster.api.list(RESOURCE_CLAIMS.at(TEAM))}
    specs, sums = stage.specs(), Counter[str]()
    for told in told_by(stage.machine).containers:
        record, claim = stage.record(told.pod.uid), claims.get(told.pod.uid)
        if record is None:
            yield f"claim {told.pod.name} is served and not on record"
            continue
        if not any(told.pod.uid in name for name in specs):
            yield f"claim {told.pod.name} is on record and has no CDI file"
        yield from _wrong_limits(told, record)
        sums.update({card.card: card.share_milli for card in told.cards})
        if claim is not None and "allocation" in claim.get("status", {}):
            consumed = sum(map(_share, claim["status"]["allocation"]["devices"]["results"]))
            if consumed != sum(grant.share_milli for grant in record.grants):
                yield f"claim {told.pod.name} is on record with another share than it was allocated"
    for card_id, milli in sums.items():
        if milli > WHOLE_MILLI:
            yield f"card {card_id} is promised {milli} milli"


def _wrong_limits(told: ContainerReport, record: ClaimRecord) -> Iterator[str]:
    grants = {grant.card: grant for grant in record.grants}
    for card in told.cards:
        grant = grants[card.card]
        if (card.granted_bytes, card.granted_share_milli) != (grant.memory_bytes, grant.share_milli):
            yield f"claim {told.pod.name} has another limit than its record says"
        if card.charged_bytes > card.limit_bytes:
            yield f"claim {told.pod.name} is charged {card.charged_bytes} of {card.limit_bytes} bytes"


def confirmed(stage: DraStage) -> set[str]:
    """Inconsistencies that persist: the driver and the broker act one after the other."""
    found = set(wrongs(stage))
    if found:
        time.sleep(_SETTLES_S)
        return found & set(wrongs(stage))
    return found


def _share(result: Json) -> int:
    return parse_whole_quantity(result["consumedCapacity"]["share"], path="share", largest=_MOST)


def parts(stage: DraStage) -> dict[str, Component]:
    """All components that may be killed."""
    control = stage.rig.control
    assert control.scheduler is not None
    return {
        "driver": stage.driver,
        "broker": stage.broker,
        "kubelet": stage.node.kubelet,
        "containerd": stage.node.containerd,
        "kube-scheduler": control.scheduler,
        "API server": control.apiserver,
    }


def kill(stage: DraStage, turn: int, chance: random.Random) -> list[str]:
    """Kill each of them in turn, sometimes with others; all run when this returns."""
    there = parts(stage)
    first = list(there)[turn % len(there)]
    others = [name for name in there if name != first]
    killed = [first, *chance.sample(others, chance.randrange(MOST_KILLED))]
    for name in chance.sample(killed, len(killed)):
        there[name].kill()
    for name in chance.sample(killed, len(killed)):
        there[name].start()
    for name in killed:
        _ready(there[name], is_ours=name in OURS)
    control = stage.rig.control
    for each in (stage.node.kubelet, control.scheduler, control.controller_manager):
        assert each is not None
        _ready(each, is_ours=False)
    return killed


def _ready(component: Component, *, is_ours: bool) -> None:
    """Others' programs exit when they find no peer, and are restarted, as by systemd; ours must not exit."""
    for _ in range(_STARTS):
        if not (component.is_running or is_ours):
            component.start()
        try:
            component.wait_ready(RUNS_WITHIN_S)
        except ComponentFailed:
            if is_ours:
                raise
        else:
            return
    component.require_running()


def left(stage: DraStage) -> dict[str, Any]:
    folders = {"records": CLAIMS_FOLDER, "sockets": PARENT, "limits": LIMITS_FOLDER, "budgets": BUDGETS_FOLDER}
    found = {what: [path.name for path in (stage.root / folder).glob("*")] for what, folder in folders.items()}
    return {**found, "specs": stage.specs(), "served": [each.pod.name for each in told_by(stage.machine).containers]}


def left_rows(stage: DraStage) -> int:
    """Number of rows that a broker started now would find; none is left when this returns."""
    stage.broker.kill()
    with contextlib.closing(RowsFile(stage.root / ROWS, boot=boot_id())) as rows:
        return len(rows.found()) + len(rows.found_pieces())


def main() -> int:
    asked = options("claims", minutes=20.0, seed=1)
    with claimed(say=say) as stage:
        stage.wait_published()
        stage.claim(TOGETHER, devices(request(200, "4Gi")))
        churn = Churn(stage, random.Random(asked.seed))  # noqa: S311  nothing is kept secret
        kills, found = _work(stage, churn, asked.minutes)
        stage.clear()
        until("nothing is left", lambda: str(left(stage)) if any(left(stage).values()) else None, RUNS_WITHIN_S)
        if rows := left_rows(stage):
            found.append(f"{rows} rows are left")
        never = {f"{name} was never killed": kills[name] for name in parts(stage)}
    done = {"ran": churn.ran, "shared": churn.shared, "asked": churn.asked}
    proved = {**{f"no pod {name}": count for name, count in done.items()}, **never}
    figures = {"pods": churn.made, "kills": kills.total(), "killed": dict(kills), **done}
    return ended("claims", found, proved, seed=asked.seed, **figures)


def _work(stage: DraStage, churn: Churn, minutes: float) -> tuple[Counter[str], list[str]]:
    """How often each component was killed, and what was wrong."""
    kills, found, turn = Counter[str](), list[str](), 0
    for step in steps(minutes, lambda: f"{churn.made} pods, {churn.ran} of them ran; killed {dict(kills)}"):
        churn.step()
        if step % KILL_EVERY == 0:
            kills.update(kill(stage, turn, churn.chance))
            turn += 1
            churn.wait_all_run()
        churn.use()
        found += confirmed(stage)
        if found:
            break
    return kills, found


if __name__ == "__main__":
    raise SystemExit(main())
