"""Runs the audit: collects facts, reports findings, and stops containers whose limits are not in force."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Literal, Protocol

import structlog

from partage_base.daemon.metrics import Metrics
from partage_isolation.audit.engagement import Engagement, Scan, Wanted
from partage_isolation.audit.facts import CardUse, ContainerFacts, Nvml, Sample
from partage_isolation.audit.findings import Finding, OfContainer
from partage_isolation.audit.listing import Listing
from partage_isolation.audit.report_files import ReportFiles
from partage_isolation.audit.runtime import Stopper, Stopping
from partage_isolation.audit.suspicions import Round, Rules
from partage_isolation.audit.threads import in_thread
from partage_isolation.audit.verdict import Memory, Verdict, audited
from partage_plugins.api.names import CardId, ContainerKey

_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)


class AuditFigures:
    def __init__(self, metrics: Metrics) -> None:
        self._found = metrics.counter("partage_broker_findings_total", "What audits found wrong.", labels=("kind",))
        self._standing = metrics.gauge(
            "partage_broker_findings_standing", "What is wrong as of the last audit.", labels=("kind",)
        )
        self._stops = metrics.counter(
            "partage_broker_stops_total", "Containers stopped because limits were not in force.", labels=("outcome",)
        )
        self.blind = metrics.gauge(
            "partage_broker_blind_cards",
            "Cards that did not say what processes hold when the last audit asked: no answer, or blind.",
        )
        self.seconds = metrics.histogram("partage_broker_audit_seconds", "What an audit took.", buckets=_BUCKETS)
        self._kinds: set[str] = set()

    def found(self, new: Iterable[Finding], standing: Iterable[Finding]) -> None:
        for finding in new:
            self._found.labels(kind=finding.kind).inc()
        now = Counter(finding.kind for finding in standing)
        self._kinds.update(now)
        for kind in self._kinds:
            self._standing.labels(kind=kind).set(now[kind])

    def stopped(self, outcome: str) -> None:
        self._stops.labels(outcome=outcome).inc()


_LOOK_S: Final = 5.0
_MOST_STUCK: Final = 8
"""Threads that wait for a process; at this number no process is inspected until one returns."""
_NOTHING: Final = Scan({}, {}, frozenset())
_log: Final = structlog.get_logger()


class Books(Protocol):
    """The audit's view of the broker's containers."""

    def facts(self) -> Sequence[ContainerFacts]: ...

    def forget(self, key: ContainerKey) -> None: ...


class Lister(Stopper, Protocol):
    async def containers(self, *, with_claims: bool = False) -> Listing | None:
        """All containers; None where the runtime does not respond."""
        ...


class Auditor:
    def __init__(  # noqa: PLR0913  those whom it asks and tells
        self,
        *,
        books: Books,
        nvml: Nvml,
        runtime: Lister,
        engagement: Engagement,
        board: ReportFiles,
        figures: AuditFigures,
        folders: Callable[[], AbstractSet[str]] = frozenset,
        rules: Rules | None = None,
        on_violation: Literal["stop", "report"] = "stop",
        look_s: float = _LOOK_S,
    ) -> None:
        """`folders` returns the containers for which something was prepared; an inspection takes at most `look_s`."""
        self._books, self._nvml, self._runtime, self._engagement = books, nvml, runtime, engagement
        self._board, self._figures, self._folders = board, figures, folders
        self._rules, self._stops = rules or Rules(), on_violation == "stop"
        self._stopping = Stopping(runtime, stopped=figures.stopped)
        self._look_s = look_s
        self._memory = Memory()
        self.listed = Listing()
        """Containers with a grant or a claim, as last listed by the runtime."""
        self.uses: Mapping[CardId, Sample | None] = {}
        """Latest samples of the cards; None where there was no response."""
        self._stuck = 0
        self._since_s: dict[Finding, float] = {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Open findings as of the last audit, newest first."""
        return tuple(sorted(self._since_s, key=lambda one: -self._since_s[one]))

    async def tick(self) -> None:
        began = time.perf_counter()
        seen = await self._seen()
        self._memory, verdict = audited(self._memory, seen, self._rules)
        self._tell(verdict, seen)
        self._act(verdict)
        self._figures.seconds.observe(time.perf_counter() - began)

    async def close(self) -> None:
        await self._stopping.close()

    # ---- Collecting --------------------------------------------------------------------------------------------------

    async def _seen(self) -> Round:
        before = self._facts()
        cards = sorted({card for container in before.values() for card in container.cards})
        listing, uses = await asyncio.gather(self._listing(before.values()), self._uses(cards))
        after = self._facts()
        seen = Round(
            now_s=time.monotonic(),
            before=before,
            after=after,
            uses=uses,
            listing=listing,
            folders=frozenset(map(ContainerKey, self._folders())),
        )
        pids = frozenset(pid for use in uses.values() if isinstance(use, CardUse) for pid in use.processes)
        looked = await self._looked(Wanted(pids, self.listed, after.keys(), seen.rows))
        return seen.with_looked(sights=looked.sights, first_seen=looked.first_seen, gone=looked.gone)

    async def listing(self) -> Listing | None:
        """The current list; None where the runtime does not respond."""
        return await self._listing(self._books.facts())

    async def _listing(self, containers: Iterable[ContainerFacts]) -> Listing | None:
        listing = await self._runtime.containers(with_claims=any(one.is_claim for one in containers))
        if listing is not None:
            self.listed = listing
        return listing

    def _facts(self) -> dict[ContainerKey, ContainerFacts]:
        return {container.key: container for container in self._books.facts()}

    async def _uses(self, cards: Sequence[CardId]) -> dict[CardId, Sample | None]:
        uses = dict(zip(cards, await asyncio.gather(*map(self._nvml.use, cards)), strict=True))
        self._figures.blind.set(sum(not isinstance(use, CardUse) for use in uses.values()))
        self.uses = uses
        return uses

    async def _looked(self, wanted: Wanted) -> Scan:
        """Inspect processes. One can block the reader of its maps indefinitely: the audit then continues without it."""
        if self._stuck >= _MOST_STUCK:
            return _NOTHING
        looking = in_thread(lambda: self._engagement.look(wanted))
        done, _ = await asyncio.wait([looking], timeout=self._look_s)
        if not done:
            self._stuck += 1
            looking.add_done_callback(self._unstuck)
            _log.error("failed to inspect a process; audits continue without it", pid=self._engagement.give_up())
            return _NOTHING
        try:
            return looking.result()
        except OSError as error:
            _log.error("failed to read the broker's mounts; this audit inspects no processes", why=str(error))
            return _NOTHING

    def _unstuck(self, looking: asyncio.Future[Scan]) -> None:
        self._stuck -= 1
        looking.exception()

    # ---- Reporting and acting ----------------------------------------------------------------------------------------

    def _tell(self, verdict: Verdict, seen: Round) -> None:
        containers = {str(key): facts for key, facts in (*seen.before.items(), *seen.after.items())}
        new = [finding for finding in verdict.findings if finding not in self._since_s]
        self._since_s = {one: self._since_s.get(one, seen.now_s) for one in verdict.findings}
        for finding in new:
            about = containers.get(finding.subject)
            where = {"pod": f"{about.pod.namespace}/{about.pod.name}", "container": about.container} if about else {}
            _log.warning("audit finding", finding=finding, what=finding.sentence, **where)
        self._figures.found(new, verdict.findings)
        self._board.show(verdict.findings, containers, stops=self._stops)

    def _act(self, verdict: Verdict) -> None:
        for key in verdict.forget:
            self._books.forget(key)
        for finding in verdict.findings:
            if self._stops and finding.stops and isinstance(finding, OfContainer):
                for container in self.listed.of(finding.key):
                    if container.running and finding.container in (None, container.id):
                        self._stopping.stop(finding.key, container.id, finding.sentence)
