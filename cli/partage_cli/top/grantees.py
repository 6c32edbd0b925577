"""Holders of limits: a container, or a budget that several containers of a pod share. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from partage_cli.tables import printable
from partage_isolation.wire.messages import CardHeld, ContainerReport, ProcessReport
from partage_plugins.api.names import BudgetName, ContainerKey
from partage_plugins.api.pods import PodRef


@dataclass(frozen=True)
class Grantee:
    """One container, or all that share a budget: for each of them the broker reports the budget's amounts."""

    containers: tuple[ContainerReport, ...]

    @property
    def pod(self) -> PodRef:
        return self.containers[0].pod

    @property
    def key(self) -> ContainerKey:
        """The key by which the broker finds the limits."""
        return self.containers[0].key

    @property
    def budget(self) -> BudgetName | None:
        return self.containers[0].budget

    @property
    def cards(self) -> tuple[CardHeld, ...]:
        return self.containers[0].cards

    @property
    def processes(self) -> tuple[ProcessReport, ...]:
        return tuple(process for each in self.containers for process in each.processes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its containers, without the duplicate while a restarted one is still listed."""
        return tuple(dict.fromkeys(each.container for each in self.containers))

    @property
    def name(self) -> str:
        """For people: `main`, or `pod (main, side)`."""
        names = ", ".join(map(printable, self.names))
        return names if self.budget is None else f"{printable(self.budget)} ({names})"


def grantees(containers: Iterable[ContainerReport]) -> list[Grantee]:
    """Grantees in a stable order by name, so that lines don't move between redraws."""
    found = dict[tuple[str, str], list[ContainerReport]]()
    for each in sorted(containers, key=lambda each: (each.pod.namespace, each.pod.name, each.container, each.key)):
        place = (each.key, "") if each.budget is None else (each.pod.uid, each.budget)
        found.setdefault(place, []).append(each)
    return [Grantee(tuple(each)) for each in found.values()]
