"""Selects victims for a pod that fits nowhere: the fewest that suffice on each node, on the cheapest node.

Nodes are first estimated by arithmetic. The most promising ones are then checked as they would be without those pods,
by everything that other decisions use: filters, plugins, resources held for others. Of the pods that would have to
leave, as many as possible are put back: first those whose budget allows no disruption, then the more important ones.

Pods that are already being deleted cost nothing if they will be gone soon. Their owners choose the grace period, so a
pod whose grace period takes years, or is over, counts like any other. Of a victim that may be suspended only its cards
are taken, if that suffices. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from itertools import islice
from math import inf
from typing import Final

from msgspec import Struct

from partage_plugins.api import GPU, NodeName, PodRequest, PodUid, SuspendedFor
from partage_plugins.api.reasons import Reason
from partage_scheduler.cluster.placed_pods import PlacedPod
from partage_scheduler.cluster.what_if import WhatIf
from partage_scheduler.cycle import Cycle
from partage_scheduler.decision import Decision, FilteredNodes
from partage_scheduler.decision.free_resources import plus
from partage_scheduler.objects import ApiPod
from partage_scheduler.preemption.budgets import Budgets
from partage_scheduler.preemption.estimate import guess
from partage_scheduler.preemption.importance import Cost, by_importance, cost_of
from partage_scheduler.preemption.suspension import may_suspend

NEVER: Final = "Never"
_ELSEWHERE: Final = Reason("elsewhere", "another node is looked at")
VIABLE: Final = 100
"""Viable nodes after which estimating ends; upstream looks at as many."""
EXAMINED: Final = 500
"""Nodes estimated at a time for a pod that may fit nowhere; it is retried soon, and then on others."""
LOOKS: Final = 16
"""Viable nodes that are checked fully."""
OVERDUE_S: Final = 30.0
"""Time for which a pod that is being deleted is waited for after its grace period."""


_Guess = tuple[Cost, NodeName, Sequence[PlacedPod]]


class Victims(Struct, frozen=True, kw_only=True):
    """Pods that must leave a node, and what the preemptor gets there then."""

    decision: Decision
    pods: tuple[ApiPod, ...]
    """The most important first; empty if it suffices that pods leave which are already being deleted or suspended."""
    suspended: frozenset[PodUid] = frozenset()
    """Those of them that stay on the node and give up their cards for a while."""
    violations: int
    """Number of them whose budget does not allow their disruption."""
    cost: Cost

    @property
    def node(self) -> NodeName:
        return self.decision.node


class NoVictims(Struct, frozen=True, kw_only=True):
    """The result if no preemption would help."""

    nodes: int
    helpless: int = 0
    """Nodes on which no preemption would help."""
    is_partial: bool = False
    """Whether not all of the other nodes were examined this time."""

    def __str__(self) -> str:
        counts = (
            (self.nodes - self.helpless, "No preemption victims found for incoming pod"),
            (self.helpless, "Preemption is not helpful for scheduling"),
        )
        reasons = ", ".join(sorted(f"{count} {why}" for count, why in counts if count))
        return f"preemption: 0/{self.nodes} nodes are available: {reasons}."


class _Look(Struct, frozen=True):
    """The check of one pod on one node."""

    pod: ApiPod
    request: PodRequest
    node: NodeName
    now: float
    forced: frozenset[PodUid] = frozenset()
    suspends: bool = True
    """Whether victims may be suspended."""


class VictimFinder:
    def __init__(self, cycle: Cycle, budgets: Budgets, *, utc: Callable[[], float], longest_grace_s: int) -> None:
        """`utc` returns wall-clock seconds. A pod that may take longer than `longest_grace_s` is not waited for."""
        self.cycle, self.cluster = cycle, cycle.cluster
        self._budgets, self._utc, self._longest_grace_s = budgets, utc, longest_grace_s
        self._from = 0
        self._sent_away: dict[PodUid, float] = {}

    def sent_away(self, pods: Iterable[PodUid]) -> None:
        """Records pods that are about to be deleted, whether or not the watch has shown it yet."""
        now = self._utc()
        self._sent_away = {uid: until for uid, until in self._sent_away.items() if now < until}
        self._sent_away |= dict.fromkeys(pods, now + OVERDUE_S)

    def grace_of(self, victim: ApiPod) -> int | None:
        """Grace period in seconds to delete a victim with; None if its own is short enough."""
        is_own_enough = victim.spec.termination_grace_period_seconds <= self._longest_grace_s and not victim.is_going
        return None if is_own_enough else self._longest_grace_s

    def is_sent_away(self, pod: PodUid) -> bool:
        return self._utc() < self._sent_away.get(pod, 0.0)

    def suspended_for(self, pod: ApiPod) -> SuspendedFor:
        return SuspendedFor(by=pod.uid, at=int(self._utc()))

    def stays(self, pod: PodUid) -> None:
        """Records that a pod could not be deleted."""
        self._sent_away.pop(pod, None)

    def may(self, pod: ApiPod) -> bool:
        """Whether preemption is worth a try: the policy allows it, and there are pods of a lower priority."""
        return pod.spec.preemption_policy != NEVER and self.cluster.placed_pods.has_lower(pod.priority)

    def victims(self, pod: ApiPod, now: float) -> Victims | NoVictims:
        """Selects the cheapest victims; raises errors of plugins and of reading the pod's request."""
        nodes = len(self.cluster.fleet)
        if not self.may(pod):
            return NoVictims(nodes=nodes)
        request, best = self.cycle.request(pod), None
        with self.cluster.kept.lifted(pod), self.cluster.suspensions.lifted(pod):
            helpless = self._helpless(pod, request, now)
            promising, is_partial = self._promising(pod, request, helpless)
            for cost, node, guessed in promising:
                if best is not None and best.cost <= cost:
                    break
                found = self._look(_Look(pod, request, node, now), guessed)
                if found is not None and (best is None or found.cost < best.cost):
                    best = found
        return best or NoVictims(nodes=nodes, helpless=len(helpless), is_partial=is_partial)

    def victims_on(self, pod: ApiPod, node: NodeName, now: float, *, chosen: Collection[PodUid] = ()) -> Victims | None:
        """Victims on a known node, among them those already `chosen`; None if preemption does not suffice.

        None of them is suspended: the caller deletes them.
        """
        if pod.spec.preemption_policy == NEVER:
            return None
        request = self.cycle.request(pod)
        with self.cluster.kept.lifted(pod), self.cluster.suspensions.lifted(pod, node):
            guessed = self._guess(pod, request, node)
            look = _Look(pod, request, node, now, frozenset(chosen), suspends=False)
            return None if guessed is None else self._look(look, guessed)

    def _helpless(self, pod: ApiPod, request: PodRequest, now: float) -> frozenset[NodeName]:
        """Nodes filtered out for reasons that no preemption removes."""
        lasting = (each for each in self.cycle.barred(pod, request, now) if each.reason.lasts)
        open_, slots = self.cycle.decider.unbarred(lasting), self.cycle.decider.slots
        return frozenset(node.name for node in self.cluster.fleet.nodes if not open_[slots.known(node.name)])

    def _promising(
        self, pod: ApiPod, request: PodRequest, helpless: Collection[NodeName]
    ) -> tuple[Sequence[_Guess], bool]:
        """The best estimates first, from another part of a large cluster each time; and whether it was only a part."""
        names = [node.name for node in self.cluster.fleet.nodes if node.name not in helpless]
        start = self._from % max(1, len(names))
        viable: list[_Guess] = []
        examined = 0
        for name in islice(self._hoped(pod, names[start:] + names[:start]), EXAMINED):
            examined += 1
            guessed = self._guess(pod, request, name)
            if guessed is not None:
                viable.append((self._cost(guessed), name, guessed))
            if len(viable) == VIABLE:
                break
        is_partial = examined < len(names)
        self._from = start + examined if is_partial else 0
        return sorted(viable, key=lambda each: (each[0], each[1]))[:LOOKS], is_partial

    def _hoped(self, pod: ApiPod, names: list[NodeName]) -> list[NodeName]:
        """These nodes, first the one on which resources are held for the pod."""
        hoped = self.cluster.kept.node_of(pod.uid) or NodeName(pod.status.nominated_node_name)
        return [hoped, *(name for name in names if name != hoped)] if hoped in names else names

    def _guess(self, pod: ApiPod, request: PodRequest, node: NodeName) -> Sequence[PlacedPod] | None:
        present = self.cluster.placed_pods.on(node)
        lower = [placed for placed in present if placed.pod.priority < pod.priority]
        if not lower:
            return None
        free = [placed.pod.uid for placed in lower if self._leaves(placed.pod)]
        gone = {*free, *(placed.pod.uid for placed in lower if placed.allocation.suspended is not None)}
        staying = [placed for placed in present if placed.pod.uid not in gone]  # on the cards
        room = self.cycle.decider.free(node)
        for placed in lower:
            room = plus(room, placed.needs) if placed.pod.uid in free else room
        candidates = [placed for placed in lower if placed.pod.uid not in free]
        found = guess(self.cluster.inventory(node).part(GPU), room, staying, candidates, request)
        return None if found is None else tuple(found.values())

    def _look(self, look: _Look, guessed: Sequence[PlacedPod]) -> Victims | None:
        """Checks the node without the estimated pods, and if needed without all that may leave."""
        forced, placed_pods = look.forced, self.cluster.placed_pods.on(look.node)
        lower = [placed for placed in placed_pods if placed.pod.priority < look.pod.priority]
        leaving = [placed for placed in lower if self._leaves(placed.pod) and placed.pod.uid not in forced]
        must = [placed for placed in lower if placed.pod.uid in forced]
        may = [placed for placed in lower if placed not in leaving and placed not in must]
        best: Victims | None = None
        with self.cluster.what_if() as world:
            world.without_ended_claims(look.node)
            for placed in (*leaving, *must):
                world.remove(placed)
            for placed in may:
                if placed.allocation.suspended is not None:
                    world.suspend(placed)
            for some in ([placed for placed in guessed if placed in may], may):
                for placed in some:
                    world.remove(placed)
                if (decision := self._decision(look)) is not None:
                    found = self._sparing(look, world, must, some, decision)
                    best = found if best is None else min(best, found, key=lambda each: each.cost)
                    if not best.violations:
                        break
                for placed in some:
                    world.back(placed)
        return best

    def _sparing(
        self, look: _Look, world: WhatIf, must: list[PlacedPod], away: Iterable[PlacedPod], decision: Decision
    ) -> Victims:
        """Puts back all of `away` that need not leave."""
        order = by_importance(away)
        violating = dict(zip(order, self._budgets.violating([placed.pod for placed in order]), strict=True))
        victims = list(must)
        for placed in sorted(order, key=lambda each: not violating[each]):
            world.back(placed)
            without = self._decision(look)
            if without is None:
                world.remove(placed)
                victims.append(placed)
            else:
                decision = without
        return self._suspending(look, world, decision, by_importance(victims))

    def _suspending(self, look: _Look, world: WhatIf, decision: Decision, victims: Sequence[PlacedPod]) -> Victims:
        """Suspends those of the victims that need only give up their cards, and may."""
        inventory, suspended = self.cluster.inventory(look.node), list[PlacedPod]()
        for placed in victims:
            if not look.suspends or not may_suspend(placed, inventory):
                continue
            world.back(placed)
            world.suspend(placed)
            without = self._decision(look)
            if without is None:
                world.resume(placed)
                world.remove(placed)
            else:
                decision = without
                suspended.append(placed)
        for placed in suspended:
            world.resume(placed)
        return self._victims(decision, victims, frozenset(placed.pod.uid for placed in suspended))

    def _victims(self, decision: Decision, victims: Sequence[PlacedPod], suspended: frozenset[PodUid]) -> Victims:
        cost = self._cost(victims)
        return Victims(
            decision=decision,
            pods=tuple(placed.pod for placed in victims),
            suspended=suspended,
            violations=cost.violations,
            cost=cost,
        )

    def _cost(self, victims: Sequence[PlacedPod]) -> Cost:
        order = by_importance(victims)
        return cost_of(order, sum(self._budgets.violating([placed.pod for placed in order])))

    def _decision(self, look: _Look) -> Decision | None:
        """What the pod would get on the node in its what-if state."""
        decider = self.cycle.decider
        barred = self.cycle.barred(look.pod, look.request, look.now)
        slot = decider.slots.known(look.node)
        if any(each.has(slot) for each in barred):
            return None
        return decider.decide(look.request, [FilteredNodes(_ELSEWHERE, ~decider.slots.flags((look.node,)))])

    def _leaves(self, pod: ApiPod) -> bool:
        """Whether it is being deleted, and can be expected to be gone soon."""
        text, now = pod.metadata.deletion_timestamp, self._utc()
        if now < self._sent_away.get(pod.uid, 0.0):
            return True
        try:
            ends = -inf if text is None else datetime.fromisoformat(text).timestamp()
        except ValueError:
            return False
        return now - OVERDUE_S < ends <= now + self._longest_grace_s
