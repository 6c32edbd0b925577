"""Pods come and go at a steady rate while schedulers are killed: none is lost, no card is given away twice.

    make soak-scheduler                                        # 10 minutes at 200 pods/s, 20 kills
    tools/named soak scheduler --seconds 60 --rate 40 --kills 3

A real API server and etcd, made-up nodes with eight cards, two replicas of the daemon that compete for the lead. Pods
end by themselves or are deleted, also before they are placed; cards fail and recover, nodes fall silent, are lost and
return. The leader is killed repeatedly, or frozen until another one leads. Every pod is judged by the API server's own
history. It prints a table and, as its last line, one JSON object. Exit status: 0 when everything was correct, 3 when
not.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from partage_base.keyring import KeyFolders, load_public_keys
from partage_base.kube import Access, ApiServer, Bookmark, Deleted, Event, KubeError, Undecodable, pods_path
from partage_scheduler.objects import ApiPod
from rig.client.cluster import Cluster
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import FOR_BENCHMARKS
from rig.identity.people import SCHEDULER, TEAM
from soak.harness import beside, ended, options, say
from soak.scheduling.account import account
from soak.scheduling.fighting import Fight, Overloaded
from soak.scheduling.fleet import Fleet
from soak.scheduling.history import History, at_share, untouched
from soak.scheduling.replicas import Replica
from soak.scheduling.users import AT_ONCE, Users
from support.gpu_fleet import GIB
from support.scheduler_process import new_key

P99_S: Final = 1.0
SETTLE_S: Final = 120.0
LATE_S: Final = 5.0
"""For this long after a card failed, decisions in flight may still give it away."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    seconds: float
    rate: float
    kills: int
    nodes: int
    life_s: float
    lease_s: float
    seed: int


class Soak:
    def __init__(self, plan: Plan, server: ApiServer, replicas: list[Replica]) -> None:
        self._plan, self._server, self._replicas = plan, server, replicas
        chance = random.Random(plan.seed)  # noqa: S311 - no secret
        self.history = History(card_memory_bytes=16 * GIB)
        self.users = Users(server, chance, life_s=plan.life_s)
        self.fleet = Fleet(server, chance, plan.nodes, collected=self._collect)
        self.fight = Fight(server, replicas, lease_s=plan.lease_s, is_calm=self._is_calm)
        self._on: dict[str, dict[str, ApiPod]] = {}
        self.to_bad_cards = self.failures = 0
        self.lost: list[str] = []
        self.took_s = 0.0

    async def run(self) -> None:
        """All of it; the findings are in the history."""
        await self.fleet.build(AT_ONCE)
        since = (await self._server.list(pods_path(TEAM), ApiPod)).resource_version
        for replica in self._replicas:
            replica.start()
        loops = (self.fleet.beat, self.fight.look)
        async with beside(self._watch(since), *map(self._over_and_over, loops)):
            await self.fight.calm()
            say("a scheduler leads; pods come")
            faults = (self.fleet.change, self.fleet.lose)
            async with beside(*map(self._over_and_over, faults)):
                await self._live()
            await self.fleet.mend_all()
            await self._settle()
        await self.users.stop()

    async def _live(self) -> None:
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.users.come(self._plan.rate, began + self._plan.seconds))
            group.create_task(self._strike(began))
        self.took_s = time.monotonic() - began

    async def _strike(self, began: float) -> None:
        for number in range(self._plan.kills):
            at = began + (number + 0.5) * self._plan.seconds / self._plan.kills
            await asyncio.sleep(max(0.0, at - time.monotonic()))
            await self.fight.strike(number)
            outage, wrong = self.fight.outages[-1], len(self.history.wrong)
            say(f"kill {number + 1}: {outage.ends - outage.begins:.1f} s; {dict(self.history.counts)}, {wrong} wrong")

    async def _settle(self) -> None:
        """Every pending pod must be placed: there is room for all."""
        until = time.monotonic() + SETTLE_S
        while self.history.waiting and time.monotonic() < until:  # noqa: ASYNC110 - a watch tells, and sets no event
            await asyncio.sleep(0.2)
        self.lost = [life.name for life in self.history.waiting]

    async def _watch(self, since: str) -> None:
        """Every change, in the API server's order, from the first to the last."""
        while True:
            async with aclosing(self._server.watch(pods_path(TEAM), ApiPod, since=since)) as events:
                async for event in events:
                    since = event.version
                    if not isinstance(event, Bookmark):
                        self._told(event)

    def _told(self, event: Event[ApiPod]) -> None:
        assert not isinstance(event, Bookmark | Undecodable)
        pod, before = event.item, len(self.history.placed)
        if isinstance(event, Deleted):
            self.history.gone(pod)
            self._on.get(pod.node, {}).pop(pod.uid, None)
            return
        self.history.told(pod, time.monotonic())
        if len(self.history.placed) > before:
            self._on.setdefault(pod.node, {})[pod.uid] = pod
            self.users.placed(pod)
            self._require_good_cards()

    def _require_good_cards(self) -> None:
        placed, calm = self.history.placed[-1], float("inf")
        late = [card for card in placed.cards if placed.bound_at - self.fleet.bad_since.get(card, calm) > LATE_S]
        if late:
            self.history.wrong.append(f"cards {late} were given away long after they had broken")

    def _collect(self, node: str) -> None:
        for pod in self._on.pop(node, {}).values():
            self.users.orphaned(pod)

    def _is_calm(self) -> bool:
        waiting = sum(not life.was_refused for life in self.history.waiting)
        return waiting <= max(20, self._plan.rate / 2)

    async def _over_and_over(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await step()
            except KubeError:
                self.failures += 1
                await asyncio.sleep(0.1)


async def lived_through(plan: Plan, control: ControlPlane, root: Path) -> int:
    new_key(root)
    cluster = Cluster(control)
    scheduler = cluster.as_account(SCHEDULER).kubectl.kubeconfig
    own = await asyncio.to_thread(Access.find, account(cluster))
    cluster.close()
    replicas = [Replica(name, scheduler, root, lease_s=plan.lease_s) for name in ("one", "two")]
    try:
        async with ApiServer(own, user_agent="soak", connections=AT_ONCE + 8, deadline_s=60) as server:
            soak = Soak(plan, server, replicas)
            await soak.run()
    except BaseException:
        for replica in replicas:
            sys.stderr.write(f"{replica.name}: {replica.said[-3000:]}\n")
        raise
    finally:
        for replica in replicas:
            replica.kill()
    soak.history.verified(load_public_keys(KeyFolders.at_root(root).public).keys)
    return told(plan, soak)


def told(plan: Plan, soak: Soak) -> int:
    history, fight = soak.history, soak.fight
    waits = untouched(history.placed, fight.outages)
    p99 = at_share(waits, 0.99)
    figures = {
        "seconds": soak.took_s,
        "pods_per_second": history.counts["came"] / soak.took_s,
        **{name.replace(" ", "_"): count for name, count in history.counts.items()},
        "lost": len(soak.lost),
        "refused_at_first": sum(each.was_refused for each in history.placed),
        "fullest_card_milli": history.fullest_milli,
        "kills": fight.kills,
        "frozen": fight.freezes,
        "ended_by_themselves": fight.lost_leads,
        "leads": fight.transitions,
        "outage_seconds": sum(each.ends - each.begins for each in fight.outages),
        "longest_outage_s": max((each.ends - each.begins for each in fight.outages), default=0.0),
        "inventories_changed": soak.fleet.changes,
        "nodes_lost": soak.fleet.losses,
        "judged_for_latency": len(waits),
        "p50_s": at_share(waits, 0.5),
        "p99_s": p99,
        "most_s": waits[-1] if waits else 0.0,
        "own_requests_refused": soak.users.failures + soak.failures,
    }
    wrong = [*history.wrong, *(f"{name} was lost" for name in soak.lost)]
    if p99 > P99_S:
        wrong.append(f"outside the outages pods waited {p99:.3f} s at p99")
    judged = {"no pod came outside the outages": waits}
    return ended("scheduler", wrong, judged, plan=msgspec.to_builtins(plan), **figures)


def main() -> int:
    """Nodes have eight cards each. With a lease of 6 s twenty outages take little time."""
    asked = options("scheduler", seconds=600.0, rate=200.0, kills=20, nodes=200, life_s=4.0, lease_s=6.0, seed=0)
    plan = Plan(**vars(asked))
    try:
        with control_plane(FOR_BENCHMARKS, say=say) as control, tempfile.TemporaryDirectory() as root:
            return uvloop.run(lived_through(plan, control, Path(root)))
    except* Overloaded as found:
        given_up = f"given up: {_innermost(found)}"
    return ended("scheduler", [given_up])


def _innermost(error: BaseException) -> BaseException:
    return _innermost(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


if __name__ == "__main__":
    raise SystemExit(main())
