"""Reporting of crishim: one log line per audit event, and metrics."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import structlog

from partage_base.condition import LONGEST_NAME, MOST_GUARDED, Guarded
from partage_base.daemon.logs import Repeats
from partage_base.daemon.metrics import Histogram, Metrics
from partage_crishim.admission import AuditEvent
from partage_crishim.proxy.counters import SECONDS, Counters
from partage_plugins.errors import PartageError

_OF_LATE_S: Final = 600.0
_log = structlog.get_logger()


class AuditLog:
    """Reports of one crishim. Counting costs an addition; the counters are read when the metrics page is built."""

    def __init__(self, seen: Counters, metrics: Metrics) -> None:
        self._repeats = Repeats(every_s=10)
        self.plugins = Histogram(SECONDS)
        self._guarded: dict[Guarded, float] = {}
        """The time of each event; the latest comes last."""
        count = metrics.read_counter
        count("partage_crishim_connections_total", "Connections of clients.", lambda: seen.connections)
        metrics.read_gauge(
            "partage_crishim_open_connections", "Connections of clients now.", lambda: seen.open_connections
        )
        count("partage_crishim_turned_away_total", "Connections that found no runtime.", lambda: seen.turned_away)
        count("partage_crishim_broken_total", "Connections on which a peer broke the protocol.", lambda: seen.broken)
        count("partage_crishim_calls_total", "Calls by method.", lambda: seen.calls, label="method")
        count("partage_crishim_held_total", "Held calls by outcome.", lambda: seen.held, label="outcome")
        self.refused = metrics.counts("partage_crishim_refused_total", "Refused containers by rule.", label="reason")
        self.changed = metrics.counts(
            "partage_crishim_changed_total", "Rewritten containers: granted or guarded.", label="why"
        )
        count(
            "partage_crishim_carried_bytes_total",
            "Bytes passed on, by who sent them.",
            lambda: {"client": seen.from_client_bytes, "runtime": seen.from_upstream_bytes},
            label="sender",
        )
        metrics.add(
            "histogram",
            "partage_crishim_judging_seconds",
            "What held calls waited for their verdict.",
            seen.judging,
        )
        metrics.add("histogram", "partage_crishim_plugin_seconds", "What plugins took for a container.", self.plugins)

    def event(self, event: AuditEvent) -> None:
        """Count and log an event.

        If the container is let through, this happens two iterations of the event loop later, after the decision was
        sent.
        """
        if event.error is None:
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._changed, event)
            return
        reason = type(event.error).__name__
        self.refused[reason] += 1
        if (silent := self._repeats.due((*event.container.values(), reason))) is None:
            return
        if event.what == "defect":
            _log.error("internal error in crishim", **event.container, exc_info=event.error)
        else:
            _log.warning("refused", **event.container, reason=reason, why=str(event.error), repeats=silent)

    def _changed(self, event: AuditEvent) -> None:
        self.changed[event.what] += 1
        if event.what == "granted":
            _log.info("granted", **event.container, gen=event.gen, kinds=list(event.kinds))
            return
        _log.info("guarded", asked=event.asked, **event.container)
        if event.asked:
            guarded = Guarded(*(name[:LONGEST_NAME] for name in event.container.values()))
            self._guarded.pop(guarded, None)
            self._guarded[guarded] = time.monotonic()

    def guarded(self) -> tuple[Guarded, ...]:
        """Containers that recently asked for cards that nobody gave them; at most `MOST_GUARDED`, the latest ones."""
        since_s = time.monotonic() - _OF_LATE_S
        recent = [guarded for guarded, at_s in self._guarded.items() if at_s > since_s][-MOST_GUARDED:]
        self._guarded = {guarded: self._guarded[guarded] for guarded in recent}
        return tuple(recent)

    def trouble(self, error: PartageError | OSError) -> None:
        """Log an error of work that crishim retries."""
        self._repeats.say("not done yet, will be tried again", key=str(error), why=str(error))
