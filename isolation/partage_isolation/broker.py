"""The broker of one node, put together from its settings: each part is whole once it is constructed."""

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
from partage_isolation.audit.board import Board
from partage_isolation.audit.driver_limits import DriverLimits
from partage_isolation.audit.engagement import Engagement
from partage_isolation.audit.facts import CardUse
from partage_isolation.audit.metrics import BrokerFigures, Counters
from partage_isolation.audit.mounts import InstalledFiles
from partage_isolation.audit.nvml import NvmlChild
from partage_isolation.audit.runtime import NoRuntime, Runtime
from partage_isolation.audit.suspicions import Rules
from partage_isolation.leases.arbiter import Arbiter
from partage_isolation.leases.durations import SECOND, Timing
from partage_isolation.leases.line import EPOCHS
from partage_isolation.leases.policies import Gemini
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.library.current import library_for_new
from partage_isolation.library.renewal import Renewal, installer
from partage_isolation.moving.room import Pace
from partage_isolation.settings import BrokerSettings
from partage_isolation.store.files import ROWS, Models, SizesFile
from partage_isolation.store.folders import Folders
from partage_isolation.store.rows_file import RowsFile
from partage_isolation.store.specs import Specs
from partage_isolation.wire.containers import Containers
from partage_isolation.wire.engines import Engines
from partage_isolation.wire.hints import Hints
from partage_isolation.wire.leases import Leases, Terms
from partage_isolation.wire.messages import CardTold, Release, Released, Told
from partage_isolation.wire.moving import Moving
from partage_isolation.wire.packets import Loss
from partage_isolation.wire.parked import ParkedQuestions
from partage_isolation.wire.report import told
from partage_isolation.wire.restore import restore
from partage_isolation.wire.sampler import Sampler, Unannounced
from partage_isolation.wire.served import Registry
from partage_isolation.wire.sessions import Sessions
from partage_isolation.wire.watch import Chores, Watch
from partage_plugins.errors import PartageError
from partage_plugins.vocabulary.names import CardId

SETTLE_S: Final = 2.0
"""After the ledger was lost: time for processes to come and say what they hold. They try again each 0.1 s."""
_log = structlog.get_logger()


class Broker:
    """All parts of one broker; none of them listens to root yet."""

    def __init__(self, settings: BrokerSettings, daemon: Daemon) -> None:
        """What is taken is entered into the daemon's stack, which gives it back in reverse order."""
        root, stack, counters = settings.root, daemon.stack, Counters()
        folders, pauses = Folders(root), Pauses(root)
        self._library = settings.below_root(settings.library_folder)
        self._models, self._terms = Models(root), terms_of(settings)
        self._rows = rows = RowsFile(root / ROWS, boot=boot_id())
        stack.callback(rows.close)
        sizes_file = SizesFile(root)
        self._sizes = sizes_file.sizes
        self._ledger = ledger = Ledger(rows, context_in_limit=settings.context_in_limit, context_size=self._sizes.size)
        self._nvml = NvmlChild(
            settings.below_root(settings.driver_root),
            deadline_s=settings.nvml_deadline_s,
            paused=lambda: pauses.reason() is not None,
        )
        stack.push_async_callback(self._nvml.close)
        self._driver_limits = DriverLimits(self._nvml, context_in_limit=settings.context_in_limit)
        registry, hints = Registry(), Hints(counters)
        self._leases = Leases(
            Arbiter(
                policy=self._terms.policy_of,
                timing=self._terms.timing,
                first_epoch=lambda _key, _card: randbelow(EPOCHS),
            ),
            registry=registry,
            terms=self._terms,
            counters=counters,
        )
        stack.callback(self._leases.close)
        self._moving = Moving(
            ledger,
            leases=self._leases,
            registry=registry,
            card_bytes=self._models.bytes_of,
            pace=Pace(longest_wait_ns=round(settings.moving_longest_wait_s * SECOND)),
        )
        stack.callback(self._moving.close)
        chores = Chores(_defect)
        self._renewal = Renewal(installer(settings), self._models.driver(), start=chores.start)
        sampler = Sampler(
            ledger, self._nvml, hints=hints, counters=counters, registry=registry, learned=sizes_file.learned
        )
        self._watch = Watch(ledger, sampler, chores=chores, ended=registry.ended)
        stack.callback(self._watch.close)
        stack.callback(registry.close)
        stack.push_async_callback(chores.close)
        self._parking = ParkedQuestions(
            ledger, sampler=sampler, hints=hints, chores=chores, counters=counters, registry=registry
        )
        self._unannounced = Unannounced(ledger, registry)
        self.containers = Containers(
            ledger,
            registry,
            specs=Specs(root),
            folders=folders,
            library=self._library,
            terms=self._terms,
            sessions=Sessions(
                ledger,
                registry=registry,
                hints=hints,
                counters=counters,
                watch=self._watch,
                parking=self._parking,
                guarded=self._moving.guarded,
                others={**self._leases.answers, **self._moving.answers},
            ),
            parking=self._parking,
            watch=self._watch,
            leases=self._leases,
            moving=self._moving,
            counters=counters,
            permit=self._driver_limits.permit,
        )
        runtime: Lister = NoRuntime()
        if settings.runtime is not None:
            client = UnaryClient(settings.below_root(settings.runtime))
            stack.callback(client.close)
            runtime = Runtime(RuntimeClient(client))
        self.engines = Engines(self.containers, registry, runtime)
        stack.callback(self.engines.close)
        self._auditor = Auditor(
            books=self.containers,
            nvml=sampler,
            runtime=self.engines,
            engagement=Engagement(InstalledFiles(self._library, root)),
            board=Board(root),
            figures=AuditFigures(daemon.metrics),
            folders=folders.names,
            rules=Rules(context_in_limit=settings.context_in_limit),
            on_violation=settings.on_violation,
        )
        stack.push_async_callback(self._auditor.close)
        BrokerFigures(
            daemon.metrics,
            node=settings.node_name,
            counters=counters,
            facts=self.containers.facts,
            sizes=self._sizes,
            free_rows=lambda: rows.free,
            refused_rows=lambda: rows.bounds.refused,
        )

    def take_over(self) -> Iterator[str]:
        """What an earlier broker left; what is wrong with some of it, a sentence each."""
        self._note_models()
        yield from self.containers.rebuild()
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
        await self._driver_limits.look(self.containers.facts, self._auditor.listed)
        listed = self._auditor.listed
        self.containers.runtime_has({key: {one.id for one in listed.of(key)} for key in listed.keys_in_use})
        for card, use in self._auditor.uses.items():
            self._unannounced.seen(card, use)
        self._leases.look()
        self._nvml.tidy()

    async def release(self, question: Release) -> Released:
        """Lets go of a claim: it ends now where nobody has it, else at an audit that finds so."""
        key = question.key
        self.containers.release(key)
        listing = await self._auditor.listing()
        return Released(is_over=listing is not None and self.containers.end(key, listing.keys_in_use))

    def tell(self) -> Told:
        try:
            library = str(library_for_new(self._library))
        except PartageError:
            library = ""
        cards = tuple(self._card(card) for card in sorted(self.containers.cards()))
        findings = tuple(finding.sentence for finding in self._auditor.findings)
        facts = self.containers.facts()
        return told(
            facts,
            version=VERSION,
            library=library,
            cards=cards,
            findings=findings,
            terms=self._terms,
            driver_holds=self._driver_limits.held,
        )

    def _card(self, card: CardId) -> CardTold:
        known, use = self._models.current().get(card), self._auditor.uses.get(card)
        return CardTold(
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
