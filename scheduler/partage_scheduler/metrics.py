"""The scheduler's metrics: how long pods wait and why, the cost of deciding and binding, and cluster usage."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from partage_base.daemon.exposition import Family, Sample
from partage_base.daemon.metrics import Metrics
from partage_base.kube import KubeError, StatusError
from partage_plugins.api.names import PluginName
from partage_plugins.registry.calls import Activity, Call
from partage_scheduler.api.binder import Binder
from partage_scheduler.api.streams import Freshness
from partage_scheduler.authority import Authority
from partage_scheduler.core import Core

PluginSeconds = dict[tuple[PluginName, str], float]
_FINE: Final = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5)
_COARSE: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0)
_COARSE_AND_FINE: Final = (*_FINE, 1.0, 5.0, 30.0)
_MOST_REASONS: Final = 128
"""Limit of reasons with their own label, since plugins may define any number; the rest are counted together."""


class TimedActivity(Activity):
    """Adds up the time that each hook of each plugin takes."""

    __slots__ = ("_seconds", "_since")

    def __init__(self, seconds: PluginSeconds) -> None:
        super().__init__()
        self._seconds, self._since = seconds, 0.0

    def enter(self, call: Call) -> None:
        super().enter(call)
        self._since = time.perf_counter()

    def leave(self) -> None:
        call = self.current
        if call is not None:
            key = call.plugin, call.hook
            self._seconds[key] = self._seconds.get(key, 0.0) + time.perf_counter() - self._since
        super().leave()


class Figures:
    def __init__(self, metrics: Metrics) -> None:
        self.plugin_seconds: PluginSeconds = {}
        self.attempts = metrics.counts("partage_scheduler_attempts_total", "Tries to place a pod.", label="result")
        self._unfit = metrics.counts(
            "partage_scheduler_unschedulable_total",
            "Tries in which a pod had no place, once for each reason that some node gave.",
            label="reason",
        )
        self._errors = metrics.counts(
            "partage_scheduler_binding_errors_total", "Answers to bindings other than yes.", label="error"
        )
        self.events = metrics.counts("partage_scheduler_events_total", "Events on pods.", label="outcome")
        self.conditions = metrics.counts(
            "partage_scheduler_conditions_total", "Writes of the condition PodScheduled.", label="outcome"
        )
        self.removed = metrics.counts(
            "partage_scheduler_removed_pods_total", "Pods that were to leave nodes.", label="outcome"
        )
        self.reminders = metrics.counts(
            "partage_scheduler_reminders_total", "kube-scheduler, of pods that fit now.", label="outcome"
        )
        self.resizes = metrics.counts("partage_scheduler_resizes_total", "Wishes for other amounts.", label="outcome")
        self.undecodable = metrics.counts(
            "partage_scheduler_unread_objects_total", "Objects that can't be read.", label="kind"
        )
        self.decide_seconds = metrics.histogram(
            "partage_scheduler_decide_seconds", "What deciding on a pod, or a gang, took.", buckets=_FINE
        )
        self.bind_seconds = metrics.histogram(
            "partage_scheduler_bind_seconds", "From a decision until it was known what became of it.", buckets=_COARSE
        )
        self.placing_seconds = metrics.histogram(
            "partage_scheduler_placing_seconds", "From when a pod was heard of until it was bound.", buckets=_COARSE
        )
        self._asked_seconds = metrics.histogram(
            "partage_scheduler_extender_seconds",
            "What answering kube-scheduler took, by question and what came of it.",
            buckets=_COARSE_AND_FINE,
            labels=("question", "result"),
        )
        self._metrics = metrics
        metrics.collect(self._of_plugins)

    def unfit(self, codes: Iterable[str]) -> None:
        """Counts the reasons of a pod that fits nowhere."""
        for code in codes:
            is_named = code in self._unfit or len(self._unfit) < _MOST_REASONS
            self._unfit[code if is_named else "other"] += 1

    def asked(self, question: str, result: str, seconds: float) -> None:
        self._asked_seconds.labels(question=question, result=result).observe(seconds)

    def erred(self, error: KubeError) -> None:
        """Counts a failed binding, or a failed check of a binding's outcome."""
        self._errors[str(error.status) if isinstance(error, StatusError) else type(error).__name__.lower()] += 1

    def read(  # noqa: PLR0913, PLR0917 - what is read, by its owner
        self,
        core: Core,
        freshness: Freshness,
        binder: Binder,
        authority: Authority,
        signing: Callable[[], str],
        occupied: Callable[[], Iterable[Family]],
    ) -> None:
        """Registers metrics that are read from these objects at each scrape."""
        gauge = self._metrics.read_gauge
        gauge("partage_scheduler_queue_pods", "Pods that are to be placed.", core.queue.sizes, label="place")
        gauge(
            "partage_scheduler_cache_age_seconds",
            "For how long what is known of a kind may be out of date; what is followed is not here.",
            freshness.ages,
            label="kind",
        )
        gauge("partage_scheduler_leads", "1 while this scheduler leads.", authority.may_bind)
        gauge("partage_scheduler_in_flight_pods", "Bindings under way.", lambda: binder.in_flight)
        gauge(
            "partage_scheduler_signing_key_info",
            "The key by which allocations are signed; always 1.",
            lambda: {signing(): 1.0},
            label="key",
        )
        self._metrics.collect(occupied)

    def _of_plugins(self) -> Iterator[Family]:
        samples = tuple(
            Sample(seconds, {"plugin": plugin, "hook": hook})
            for (plugin, hook), seconds in sorted(self.plugin_seconds.items())
        )
        yield Family("partage_scheduler_plugin_seconds_total", "counter", "Time in plugins.", samples)
