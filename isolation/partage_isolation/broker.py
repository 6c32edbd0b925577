"""The broker of one node, assembled from its settings: each part is complete once it is constructed."""

from __future__ import annotations

from collections.abc import Iterator
from secrets import randbelow
from typing import Final

import structlog

from partage_base.cri import RuntimeClient, UnaryClient
from partage_base.daemon.life import Daemon
from partage_base.peers import boot_id
from partage_base.version import VERSION
from partage_gpu.nvml.pause import Pauses
from partage_isolation.audit.auditor import AuditFigures, Auditor, Lister
from partage_isolation.audit.driver_limits import DriverLimits
from partage_isolation.audit.engagement import Engagement
from partage_isolation.audit.facts import CardUse
from partage_isolation.audit.mounts import InstalledFiles
from partage_isolation.audit.nvml import NvmlChild
from partage_isolation.audit.report_files import ReportFiles
from partage_isolation.audit.runtime import NoRuntime, Runtime
from partage_isolation.audit.suspicions import Rules
from partage_isolation.checkpoint.driver import Checkpoints
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.library.current import library_for_new
from partage_isolation.library.renewal import Renewal, installer
from partage_isolation.metrics import BrokerFigures, Counters
from partage_isolation.migration.room import MigrationSettings
from partage_isolation.settings import BrokerSettings
from partage_isolation.store.files import ROWS, Models, SizesFile
from partage_isolation.store.rows_file import RowsFile
from partage_isolation.timeslices.arbiter import Arbiter
from partage_isolation.timeslices.durations import SECOND, Timing
from partage_isolation.timeslices.line import EPOCHS
from partage_isolation.timeslices.policies import Gemini
from partage_isolation.wire.answers import Answers
from partage_isolation.wire.containers import Containers
from partage_isolation.wire.deferred_requests import DeferredRequests
from partage_isolation.wire.engines import Engines
from partage_isolation.wire.messages import (
    Answer,
    BrokerReport,
    CardReport,
    Enter,
    Entered,
    Prepare,
    Question,
    Release,
    Released,
    SetLimits,
    Suspend,
)
from partage_isolation.wire.migration import Migration
from partage_isolation.wire.notifications import Notifications
from partage_isolation.wire.packets import Loss
from partage_isolation.wire.report import told
from partage_isolation.wire.restore import restore
from partage_isolation.wire.sampler import Sampler
from partage_isolation.wire.served import Registry
from partage_isolation.wire.sessions import Sessions
from partage_isolation.wire.timeslices import Terms, TimeSlices
from partage_isolation.wire.watch import BackgroundTasks, Watch
from partage_plugins.api.names import CardId, ContainerKey
from partage_plugins.errors import PartageError

SETTLE_S: Final = 2.0
"""Time after the loss of the ledger for processes to reconnect and report; they retry every 0.1 s."""
_log = structlog.get_logger()


class Broker:
    """All parts of one broker, without the control socket."""

    def __init__(self, settings: BrokerSettings, daemon: Daemon) -> None:
        """Resources are registered with the daemon's stack, which releases them in reverse order."""
        self._settings, self._stack = settings, daemon.stack
        self._library = settings.below_root(settings.library_folder)
        self._pauses = Pauses(settings.root)
        self._models, self._terms = Models(settings.root), terms_of(settings)
        self._rows = RowsFile(settings.root / ROWS, boot=boot_id())
        self._stack.callback(self._rows.close)
        self._counters, self._registry = Counters(), Registry(self._rows.bounds)
        self._background_tasks = BackgroundTasks(_defect)
        sizes_file = SizesFile(settings.root)
        self._sizes = sizes_file.sizes
        self._ledger = Ledger(self._rows, context_in_limit=settings.context_in_limit, context_size=self._sizes.size)
        self._nvml = self._asked_in_a_child()
        self._driver_limits = DriverLimits(self._nvml, context_in_limit=settings.context_in_limit)
        self._timeslices, self._moving = self._leases_and_moves()
        self._renewal = Renewal(installer(settings), self._models.driver(), start=self._background_tasks.start)
        hints = Notifications(self._counters)
        self._sampler = Sampler(
            self._ledger,
            self._nvml,
            hints=hints,
            counters=self._counters,
            registry=self._registry,
            learned=sizes_file.learned,
        )
        self._watch = Watch(
            self._ledger, self._sampler, background_tasks=self._background_tasks, registry=self._registry
        )
        self._stack.callback(self._watch.close)
        self._stack.callback(self._registry.close)
        self._stack.push_async_callback(self._background_tasks.close)
        self._parking = DeferredRequests(
            self._ledger,
            sampler=self._sampler,
            hints=hints,
            background_tasks=self._background_tasks,
            counters=self._counters,
            registry=self._registry,
        )
        self._containers = self._served_by(hints)
        self._engines = Engines(self._containers, self._registry, self._runtime())
        self._stack.callback(self._engines.close)
        self._auditor = self._audits(AuditFigures(daemon.metrics))
        BrokerFigures(
            daemon.metrics,
            node=settings.node_name,
            counters=self._counters,
            facts=self._containers.facts,
            sizes=self._sizes,
            free_rows=lambda: self._rows.free,
            refused_rows=lambda: self._rows.bounds.refused,
        )

    # ---- Construction ------------------------------------------------------------------------------------------------

    def _asked_in_a_child(self) -> NvmlChild:
        nvml = NvmlChild(
            self._settings.below_root(self._settings.driver_root),
            deadline_s=self._settings.nvml_deadline_s,
            paused=lambda: self._pauses.reason() is not None,
        )
        self._stack.push_async_callback(nvml.close)
        return nvml

    def _leases_and_moves(self) -> tuple[TimeSlices, Migration]:
        arbiter = Arbiter(
            policy=self._terms.policy_of,
            timing=self._terms.timing,
            first_epoch=lambda _key, _card: randbelow(EPOCHS),
        )
        timeslices = TimeSlices(arbiter, registry=self._registry, terms=self._terms, counters=self._counters)
        self._stack.callback(timeslices.close)
        moving = Migration(
            self._ledger,
            timeslices=timeslices,
            registry=self._registry,
            card_bytes=self._models.bytes_of,
            pace=MigrationSettings(longest_wait_ns=round(self._settings.moving_longest_wait_s * SECOND)),
        )
        self._stack.callback(moving.close)
        return timeslices, moving

    def _served_by(self, hints: Notifications) -> Containers:
        answers = Answers(
            self._ledger,
            registry=self._registry,
            hints=hints,
            watch=self._watch,
            parking=self._parking,
            moving=self._moving,
        )
        sessions = Sessions(
            self._ledger,
            registry=self._registry,
            counters=self._counters,
            watch=self._watch,
            timeslices=self._timeslices,
            answers={**answers.answers, **self._timeslices.answers, **self._moving.answers},
        )
        return Containers(
            self._ledger,
            self._registry,
            root=self._settings.root,
            library=self._library,
            sessions=sessions,
            parking=self._parking,
            watch=self._watch,
            timeslices=self._timeslices,
            moving=self._moving,
            permit=self._driver_limits.permit,
            background_tasks=self._background_tasks,
            checkpoints=Checkpoints(
                self._settings.below_root(self._settings.driver_root), paused=lambda: self._pauses.reason() is not None
            ),
            card_bytes=self._models.bytes_of,
        )

    def _runtime(self) -> Lister:
        if self._settings.runtime is None:
            return NoRuntime()
        client = UnaryClient(self._settings.below_root(self._settings.runtime))
        self._stack.callback(client.close)
        return Runtime(RuntimeClient(client))

    def _audits(self, figures: AuditFigures) -> Auditor:
        auditor = Auditor(
            books=self._containers,
            nvml=self._sampler,
            runtime=self._engines,
            engagement=Engagement(InstalledFiles(self._library, self._settings.root)),
            board=ReportFiles(self._settings.root),
            figures=figures,
            folders=self._containers.folders.names,
            rules=Rules(context_in_limit=self._settings.context_in_limit),
            on_violation=self._settings.on_violation,
        )
        self._stack.push_async_callback(auditor.close)
        return auditor

    # ---- Operation ---------------------------------------------------------------------------------------------------

    def take_over(self) -> Iterator[str]:
        """Restore an earlier broker's state; yield a message for each fault."""
        self._note_models()
        yield from self._containers.rebuild()
        yield from restore(self._rows, self._ledger, self._watch)
        if self._rows.lost:
            self._parking.settle(SETTLE_S)
            yield (
                f"the file of rows could not be read: {self._rows.lost}; what processes hold is found out again, and "
                f"nothing more is lent for {SETTLE_S:g} s"
            )

    async def look(self) -> None:
        self._note_models()
        self._renewal.look(self._models.driver())
        await self._auditor.tick()
        await self._driver_limits.look(self._containers.facts, self._auditor.listed)
        listed = self._auditor.listed
        self._containers.runtime_has({key: {one.id for one in listed.of(key)} for key in listed.keys_in_use})
        for card, use in self._auditor.uses.items():
            self._sampler.seen(card, use)
        self._timeslices.look()
        self._nvml.tidy()

    # ---- Requests of root --------------------------------------------------------------------------------------------

    async def answer(self, question: Question) -> Answer:
        """Handle a request; raises a `BrokerError` for one that fails."""
        match question:
            case Prepare():
                await self._containers.permit(question)
                prepared = self._containers.prepare(question)
                await self._containers.recall(question.key)
                return prepared
            case SetLimits():
                await self._containers.permit(question)
                return await self._containers.set_limits(question)
            case Suspend():
                return self._containers.suspend(question)
            case Release(key=key):
                return await self._released(key)
            case Enter():
                self._engines.enter(question)
                return Entered()
            case _:
                return self._told()

    async def _released(self, key: ContainerKey) -> Released:
        """Release a claim: it ends now if no container has it, otherwise at a later audit."""
        self._containers.release(key)
        listing = await self._auditor.listing()
        return Released(is_over=listing is not None and self._containers.end(key, listing.keys_in_use))

    def _told(self) -> BrokerReport:
        try:
            library = str(library_for_new(self._library))
        except PartageError:
            library = ""
        cards = tuple(self._card(card) for card in sorted(self._containers.cards()))
        return told(
            self._containers.facts(),
            version=VERSION,
            library=library,
            cards=cards,
            findings=tuple(finding.sentence for finding in self._auditor.findings),
            terms=self._terms,
            driver_holds=self._driver_limits.held,
        )

    def _card(self, card: CardId) -> CardReport:
        known, use = self._models.current().get(card), self._auditor.uses.get(card)
        return CardReport(
            card=card,
            index=known.index if known else None,
            model=known.model if known else None,
            memory_bytes=known.memory_bytes if known else None,
            used_bytes=sum(held or 0 for held in use.processes.values()) if isinstance(use, CardUse) else None,
            policy=self._terms.name_of(card),
        )

    def _note_models(self) -> None:
        for card in self._models.current().values():
            self._sizes.is_model(card.id, card.model)


def terms_of(settings: BrokerSettings) -> Terms:
    return Terms(
        policy=settings.policy,
        policies=settings.policy_of_cards,
        timing=Timing(quantum_ns=round(settings.quantum_ms * 1e6)),
        gemini=Gemini(
            quota_ns=round(settings.gemini_quota_ms * 1e6),
            least_ns=round(settings.gemini_least_ms * 1e6),
            window_ns=round(settings.gemini_window_ms * 1e6),
        ),
        loss=Loss.FREE if settings.compute_on_broker_loss == "free-run" else Loss.CLOSED,
    )


def _defect(error: BaseException) -> None:
    _log.error("unexpected error; this is a defect, please report it", exc_info=error)
