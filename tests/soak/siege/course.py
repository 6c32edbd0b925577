"""One run: innocents alone, then beside the attacker; its watches, measurements and verdicts."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from partage_base.kube import ApiServer, KubeError, pods_path
from partage_scheduler.objects import ApiPod
from rig.identity.people import TEAM
from soak.harness import beside
from soak.scheduling.fleet import CARDS, Fleet
from soak.scheduling.history import History, at_share
from soak.siege.attacker import Attacker
from soak.siege.bare import Bare
from soak.siege.brokered import Brokered
from soak.siege.card import SharedCard
from soak.siege.innocents import NAMESPACE, Innocents, Pair
from soak.siege.machine import Machine
from soak.siege.observed import noted
from soak.siege.papers import EXTENDER
from soak.siege.ports import Port, Probe, Squatter
from soak.siege.prober import probed
from soak.siege.urgent import Urgent
from soak.siege.verdicts import Verdict, Wrong
from soak.siege.witness import Witness
from support import procfs
from support.chain_stage import Chain
from support.gpu_fleet import GIB

OWN_S: Final = 0.1
"""The longest delay of innocents by the scheduler itself beside an attacker, at p99: three whole waits at rest."""
STALLED: Final = 0.5
"""Part of the time: a scheduler without a processor for longer queues work, which then looks like its own delay."""
RSS_MIB: Final = 400
SLOWEST: Final = 10
JUST_S: Final = 1.0
SETTLE_S: Final = 60.0
AT_ONCE: Final = 32
SQUATTERS: Final = {EXTENDER: (60.0, 300)}
"""Connections a second, and at once; half-open ones to the port with the most expensive handshakes."""
A_SQUATTER: Final = (20.0, 100)
CONNECTIONS: Final = 150
"""More descriptors than in calm: both ports accept 32 of one address that have not sent a request."""
BY_NAME: Final = slice(2 * CARDS, 7 * CARDS)
"""The made-up nodes' cards that the attacker requests by name: not those of the first two nodes."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    seconds: float
    calm_s: float
    rate: float
    acts: float
    nodes: int
    seed: int


@dataclass(frozen=True)
class Parties:
    admin: ApiServer
    user: ApiServer
    chain: Chain
    card: SharedCard
    bare: Bare
    brokered: Brokered
    ports: Sequence[Port]
    notes: Path
    """Written by the scheduler."""


class Course:
    """It is `run` once; afterwards its parts have the observations."""

    def __init__(self, plan: Plan, parties: Parties) -> None:
        chance = random.Random(plan.seed)  # noqa: S311 - no secret
        self.plan, self._admin, self._chain = plan, parties.admin, parties.chain
        self.card, self.bare, self.brokered = parties.card, parties.bare, parties.brokered
        self._notes = parties.notes
        self.history = History(card_memory_bytes=80 * GIB)
        self.innocents = Innocents(self._admin, chance, rate=plan.rate)
        self.urgent = Urgent(self._admin)
        self.fleet = Fleet(self._admin, chance, plan.nodes, collected=lambda _node: None)
        cards = [f"n{number:04}-{place}" for number in range(plan.nodes) for place in range(CARDS)]
        self.attacker = Attacker(parties.user, chance, cards[BY_NAME])
        self.probes = [Probe(port) for port in parties.ports]
        self.squatters = [Squatter(port, chance, *SQUATTERS.get(port.name, A_SQUATTER)) for port in parties.ports]
        self.witnesses = [
            Witness(self._admin, pods_path(), told=self._told, gone=self._gone),
            Witness(self._admin, pods_path(NAMESPACE), told=self._told_of_innocent, gone=lambda _pod: None),
        ]
        self.machine = Machine()
        self.rss_mib = 0.0
        self.descriptors_calm = self.descriptors = 0
        self._stalls: list[tuple[float, float]] = []
        self.hostile_since = 0.0

    async def run(self, say: Callable[[str], None]) -> None:
        """Both parts, and some time for pods that still wait."""
        await self.fleet.build(AT_ONCE)
        witnesses = [each.follow() for each in self.witnesses]
        always = (*witnesses, over_and_over(self.fleet.beat), over_and_over(self._measure), probed(self.probes))
        async with beside(*always, self.machine.watch()):
            say(f"innocents come alone, {self.plan.rate:g} a second")
            await self.innocents.come(self.plan.calm_s)
            self.hostile_since, self.descriptors_calm = time.monotonic(), self.descriptors
            self.machine.turn()
            say(f"the attacker is let loose, {self.plan.acts:g} acts a second")
            hostile = (self.attacker.act(self.plan.acts), *(each.run() for each in self.squatters))
            async with beside(*hostile, self.card.watch(), self.brokered.flood(), self.urgent.come()):
                await self.innocents.come(self.plan.seconds)
            await asyncio.to_thread(self.brokered.read)
            self.machine.turn()
            await self._settle()
        self.innocents.read(noted(self._notes.read_text(encoding="ascii")))

    def pairs(self) -> tuple[list[Pair], list[Pair]]:
        """Pairs of innocents alone and beside the attacker that were placed."""
        placed = [pair for pair in self.innocents.pairs if pair.waited_s is not None and pair.twin_s is not None]
        calm = [pair for pair in placed if pair.made_at < self.hostile_since]
        return calm, placed[len(calm) :]

    @property
    def stalled(self) -> float:
        """The part of the time beside the attacker in which the scheduler was runnable without a processor."""
        stalls = [(at, waited_s) for at, waited_s in self._stalls if at >= self.hostile_since]
        if len(stalls) < 2:
            return 0.0
        (began, before_s), (ended, after_s) = stalls[0], stalls[-1]
        return (after_s - before_s) / (ended - began)

    def slowest(self) -> Iterator[str]:
        """The innocents that waited longest, and the attacker's acts just before."""
        for pair in sorted(chain(*self.pairs()), key=lambda pair: -_times(pair)[1])[:SLOWEST]:
            made, wait, twin = _times(pair)
            acts = [name for began, ended, name in self.attacker.times if began < made + wait and made - JUST_S < ended]
            came_s = made - self.hostile_since
            yield (
                f"{wait:.3f} s, {pair.own_s or 0.0:.3f} s of them the scheduler's own, its twin {twin:.3f} s, "
                f"{came_s:.1f} s after the attacker came: {', '.join(acts)}"
            )

    def wrong(self) -> Iterator[Wrong]:
        yield from (Wrong(Verdict.CARDS, what) for what in self.history.wrong)
        yield from self.card.wrong()
        yield from self.bare.wrong()
        yield from self.attacker.wrong()
        yield from self.urgent.wrong()
        yield from self.brokered.wrong(self.hostile_since)
        yield from self._daemons()
        yield from self._times()

    def unproved(self) -> Iterator[str]:
        """Parts of the attack that did not take place, so that their harmlessness proves nothing."""
        yield from (f"the user never came to this: {act}" for act in self.attacker.undone)
        yield from (f"the container never came to this: {attempt}" for attempt in self.card.untried())
        yield from self.brokered.unproved(self.hostile_since)
        yield from (f"no connections to {each.port.name}" for each in self.squatters if each.opened < each.at_once)
        if not self.attacker.displaced:
            yield "no urgent pod took the place of one that lingers"
        if not self.bare.running:
            yield "no container that was given nothing was started"
        if not all(self.pairs()):
            yield "no innocents came"
        if not all(map(own_waits, self.pairs())):
            yield "the scheduler noted nothing of innocents"
        if self.stalled > STALLED and at_share(own_waits(self.pairs()[1]), 0.99) > OWN_S:
            yield f"the scheduler had no processor for {self.stalled:.0%} of the time"
        for probe in self.probes:
            if probe.answered <= probe.starved:
                yield f"the machine had no time for the probes of {probe.port.name}"

    def _daemons(self) -> Iterator[Wrong]:
        rig = self._chain.rig
        others = [component for node in rig.nodes.values() for component in node.others]
        components = {each.name: each.is_running for each in (*rig.components, *others)}
        running = {"the scheduler": self._chain.scheduler.is_running, **components}
        yield from (Wrong(Verdict.LIVES, f"{name} has ended") for name, is_running in running.items() if not is_running)
        for probe in self.probes:
            if probe.restarts and probe.port.caller:
                yield Wrong(Verdict.ANSWERS, f"{probe.port.name}: its caller was not answered, {probe.failed} times")
            elif probe.restarts:
                yield Wrong(Verdict.LIVES, f"{probe.port.name}: kubelet would have restarted it")
        if unreadable := sum(each.unreadable for each in self.witnesses):
            yield Wrong(Verdict.WATCHES, f"{unreadable} times what a watch told could not be read")
        if unread := self.attacker.nested & self.witnesses[0].undecodable:
            yield Wrong(Verdict.WATCHES, f"{len(unread)} pods could not be read, of {len(self.attacker.nested)} nested")
        if self.descriptors > self.descriptors_calm + CONNECTIONS:
            yield Wrong(
                Verdict.CONNECTIONS,
                f"the scheduler had {self.descriptors} descriptors, and {self.descriptors_calm} in calm",
            )
        if self.rss_mib > RSS_MIB:
            yield Wrong(Verdict.MEMORY, f"the scheduler had {self.rss_mib:.0f} MiB, of {RSS_MIB}")

    def _times(self) -> Iterator[Wrong]:
        waiting = self.innocents.waiting
        if waiting:
            longest = time.monotonic() - min(pair.made_at for pair in waiting)
            yield Wrong(Verdict.PLACED, f"{len(waiting)} innocents are on no node, one for {longest:.0f} s")
        calm, hostile = (at_share(own_waits(pairs), 0.99) for pairs in self.pairs())
        if hostile > OWN_S and self.stalled <= STALLED:
            yield Wrong(
                Verdict.WAITS,
                f"the scheduler itself let innocents wait {hostile:.3f} s at p99 beside the attacker, and {calm:.3f} s "
                "alone",
            )

    async def _settle(self) -> None:
        until = time.monotonic() + SETTLE_S
        while (self.innocents.waiting or self.urgent.waiting) and time.monotonic() < until:  # noqa: ASYNC110 - a watch tells, and sets no event
            await asyncio.sleep(0.2)

    async def _measure(self) -> None:
        scheduler = self._chain.scheduler.pid
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended, which is a verdict of its own
            self.rss_mib = max(self.rss_mib, procfs.status(scheduler, "VmRSS") / 1024)
            self.descriptors = max(self.descriptors, procfs.descriptors(scheduler))
            self._stalls.append((time.monotonic(), procfs.waited_s(scheduler)))
        await asyncio.sleep(1)

    def _told(self, pod: ApiPod) -> None:
        before = len(self.history.placed)
        self.history.told(pod, time.monotonic())
        self.urgent.told(pod)
        if pod.namespace == NAMESPACE:
            self.innocents.heard(pod)
        if pod.namespace == TEAM and len(self.history.placed) > before:
            self.attacker.bound(pod)

    def _told_of_innocent(self, pod: ApiPod) -> None:
        self.innocents.told(pod, time.monotonic())

    def _gone(self, pod: ApiPod) -> None:
        self.history.gone(pod)
        self.urgent.gone(pod)
        if pod.namespace == TEAM:
            self.attacker.gone(pod)


def _times(pair: Pair) -> tuple[float, float, float]:
    return pair.made_at, pair.waited_s or 0.0, pair.twin_s or 0.0


def waits(pairs: Sequence[Pair]) -> list[float]:
    return sorted(_times(pair)[1] for pair in pairs)


def twins(pairs: Sequence[Pair]) -> list[float]:
    return sorted(_times(pair)[2] for pair in pairs)


def own_waits(pairs: Sequence[Pair]) -> list[float]:
    """The scheduler's own parts, as far as it noted them."""
    return sorted(pair.own_s for pair in pairs if pair.own_s is not None)


async def over_and_over(step: Callable[[], Awaitable[None]]) -> None:
    """Repeat until cancelled; a request that fails is retried."""
    while True:
        try:
            await step()
        except KubeError:
            await asyncio.sleep(0.1)
