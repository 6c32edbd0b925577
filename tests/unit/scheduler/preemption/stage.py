"""Nodes with cards, pods of several priorities on them, and one pod that fits nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from partage_plugins.api import NodeName
from partage_scheduler.cycle import Bind
from partage_scheduler.objects import ApiBudget, ApiPod
from partage_scheduler.preemption import Budgets, NoVictims, VictimFinder, Victims
from partage_scheduler.queue import Waiting
from support.objects import given, labelled, pod, read
from unit.scheduler.cluster.cards import granted
from unit.scheduler.test_deciding_on_pods import NOW, Stage

TODAY = 1_767_229_200.0
"""01:00 UTC on the day on which test pods are started and deleted."""
GRACE_S = 120


def running(  # noqa: PLR0913  each is said where it matters
    name: str, node: str, card: int = 0, milli: int = 0, *, priority: int = 0, minute: int = 0, **more: Any
) -> ApiPod:
    """A pod on a node that holds part of a card there and was started in that minute."""
    notes = given(granted(f"uid-{name}", node, card, milli)) if milli else {}
    made = pod(name, node=node, priority=priority, annotations=notes, **more)
    return replace(made, status=replace(made.status, start_time=f"2026-01-01T00:{minute:02}:00Z"))


def going_until(pod: ApiPod, seconds: int) -> ApiPod:
    """The same pod, being deleted; its grace period ends `seconds` after TODAY."""
    until = datetime.fromtimestamp(TODAY + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp=until))


def budget(name: str, labels: Mapping[str, str], allowed: int = 0, *, disrupted: tuple[str, ...] = ()) -> ApiBudget:
    status = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")}
    metadata, spec = {"name": name, "namespace": "team"}, {"selector": labelled(**labels)}
    return read(ApiBudget, metadata=metadata, spec=spec, status=status)


class Preempted(Stage):
    """A scheduler without its I/O, which may preempt."""

    def __init__(self, *pods: ApiPod, budgets: tuple[ApiBudget, ...] = (), **nodes: int) -> None:
        super().__init__(None, **nodes)
        self.budgets = Budgets()
        for limit in budgets:
            self.budgets.put(limit)
        self.finder = VictimFinder(self.cycle, self.budgets, utc=lambda: TODAY, longest_grace_s=GRACE_S)
        for each in pods:
            self.cluster.pod(each)

    def chosen(self, new: ApiPod) -> tuple[str, list[str]] | None:
        """The node and its victims, or None if preemption helps nowhere."""
        found = self.finder.victims(new, NOW)
        return None if isinstance(found, NoVictims) else (found.node, sorted(each.name for each in found.pods))

    def victims(self, new: ApiPod) -> Victims:
        found = self.finder.victims(new, NOW)
        assert isinstance(found, Victims)
        return found

    def send_away(self, victims: Victims) -> None:
        for each in victims.pods:
            self.cluster.pod_gone(each.uid)

    def decides(self, new: ApiPod) -> str | None:
        """The node on which the pod would be assumed now, or None."""
        (verdict,) = self.cycle.decide(Waiting((new,)), NOW)
        return verdict.decision.node if isinstance(verdict, Bind) else None

    def keep(self, new: ApiPod, victims: Victims) -> None:
        self.cluster.keep(new, victims.decision)

    def free(self, node: str) -> tuple[int, int]:
        found = self.decider.free(NodeName(node))
        return found.cpu_milli, found.memory_bytes
