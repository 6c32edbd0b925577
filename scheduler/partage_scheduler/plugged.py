"""A decider over real plugins: the façade, with the decider's books as the record that plugins are told anew from."""

from __future__ import annotations

from collections.abc import Callable

from partage_plugins.errors import PartageError
from partage_plugins.registry.calls import Activity
from partage_plugins.registry.registry import Registry
from partage_plugins.sides.scheduler import SchedulerSide, SideSettings
from partage_scheduler.deciding import Books, Decider


def decider_over(
    registry: Registry,
    *,
    settings: SideSettings | None = None,
    on_renewed: Callable[[PartageError], None] | None = None,
    activity: Activity | None = None,
) -> tuple[Decider, SchedulerSide]:
    """A decider without nodes, and the façade, which reads requests.

    `on_renewed` is told why a plugin was made anew, for the log; `activity` says which call is running.
    """

    def renewed(why: PartageError) -> None:
        decider.renewed()
        if on_renewed is not None:
            on_renewed(why)

    books = Books()
    side = SchedulerSide(registry, books, settings=settings, activity=activity, on_renewed=renewed)
    decider = Decider(side, books)
    return decider, side
