"""Puts a broker together from its settings: who knows what, and where on the node it lies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from secrets import randbelow
from typing import Final

import structlog

from partage_base.cri import RuntimeClient, UnaryClient
from partage_base.daemon.life import Daemon
from partage_base.version import VERSION
from partage_isolation.broker.books import Books
from partage_isolation.broker.chores import Chores
from partage_isolation.broker.control import Control
from partage_isolation.broker.counters import Counters
from partage_isolation.broker.folders import Folders
from partage_isolation.broker.hints import Hints
from partage_isolation.broker.learning import ContextSizes
from partage_isolation.broker.leases import Leases
from partage_isolation.broker.ledger import Ledger
from partage_isolation.broker.metering import Figures
from partage_isolation.broker.models import Models
from partage_isolation.broker.parking import Parking
from partage_isolation.broker.processes import boot_id
from partage_isolation.broker.restoring import restore
from partage_isolation.broker.rows_file import RowsFile
from partage_isolation.broker.sampler import Sampler
from partage_isolation.broker.sessions import Sessions, decided
from partage_isolation.broker.specs import Specs
from partage_isolation.broker.state_files import ROWS, read_sizes, write_sizes
from partage_isolation.broker.telling import told
from partage_isolation.broker.terms import Terms
from partage_isolation.broker.unannounced import Unannounced
from partage_isolation.broker.watch import Watch
from partage_isolation.broker.wire import Loss
from partage_isolation.control.questions import CardTold, Told
from partage_isolation.leasing.arbiter import Arbiter
from partage_isolation.leasing.timing import Timing
from partage_isolation.leasing.words import EPOCHS
from partage_isolation.library.current import library_for_new
from partage_isolation.library.pages import line_writer
from partage_isolation.settings import BrokerSettings
from partage_isolation.watching.assembling import auditor_of, nvml_of
from partage_isolation.watching.auditor import Auditor
from partage_isolation.watching.nvml import NvmlChild
from partage_isolation.watching.runtime import Runtime
from partage_isolation.watching.use import CardUse, Sample
from partage_plugins.errors import PartageError
from partage_plugins.vocabulary.names import CardId

SETTLE_S: Final = 2.0
"""After the books were lost: time for processes to come and say what they hold. They try again each 0.1 s."""
_log = structlog.get_logger()


@dataclass
class Parts:
    """What a service runs."""

    settings: BrokerSettings
    ledger: Ledger
    rows: RowsFile
    books: Books
    unannounced: Unannounced
    sampler: Sampler
    watch: Watch
    chores: Chores
    nvml: NvmlChild
    auditor: Auditor
    runtime_client: UnaryClient
    sizes: ContextSizes
    models: Models
    terms: Terms
    leases: Leases
    control: Control = field(init=False)

    def take_over(self) -> Iterator[str]:
        """What an earlier broker left; what is wrong with some of it, a sentence each."""
        self._note_models()
        yield from self.books.rebuild()
        yield from restore(self.rows, self.ledger, self.watch)
        if self.rows.lost:
            self._settle()
            yield (
                f"the file of rows could not be read: {self.rows.lost}; what processes hold is found out anew, and "
                f"nothing more is lent for {SETTLE_S:g} s"
            )

    async def look(self) -> None:
        """At everything, once."""
        self._note_models()
        await self.auditor.tick()
        self.books.runtime_has({key: container.id for key, container in self.auditor.listed.items()})
        for card, use in self.auditor.uses.items():
            self.unannounced.seen(card, use)
        self.leases.look()
        self.nvml.tidy()

    def tell(self) -> Told:
        """For people's tools."""
        try:
            library = str(library_for_new(self.settings.below_root(self.settings.library_folder)))
        except PartageError:
            library = ""
        cards = tuple(self._card(card) for card in sorted(self.books.cards()))
        findings = tuple(finding.sentence for finding in self.auditor.findings)
        return told(
            self.books.facts(),
            version=VERSION,
            library=library,
            cards=cards,
            findings=findings,
            terms=self.terms,
        )

    async def close(self) -> None:
        """Ends all that was begun."""
        await self.control.close()
        await self.auditor.close()
        await self.chores.close()
        self.books.close()
        self.watch.close()
        self.leases.close()
        self.runtime_client.close()
        await self.nvml.close()
        self.rows.close()

    def learned(self, card: CardId, size: int) -> None:
        """What a context takes; remembered for the next broker too."""
        if self.sizes.learned(card, size):
            _log.info("a context was measured", card=card, model=self.sizes.model_of(card), bytes=size)
            try:
                write_sizes(self.settings.root, self.sizes.known)
            except OSError as error:
                _log.warning("what contexts take can't be written down", why=str(error))

    def _card(self, card: CardId) -> CardTold:
        known, use = self.models.current().get(card), self.auditor.uses.get(card)
        return CardTold(
            card=card,
            index=known.index if known else None,
            model=known.model if known else None,
            memory_bytes=known.memory_bytes if known else None,
            used_bytes=sum(held or 0 for held in use.processes.values()) if isinstance(use, CardUse) else None,
            policy=self.terms.name_of(card),
        )

    def _note_models(self) -> None:
        for card in self.models.current().values():
            self.sizes.is_model(card.id, card.model)

    def _settle(self) -> None:
        self.ledger.lending.is_settling = True
        self.watch.parking.settled_s = time.monotonic() + SETTLE_S
        asyncio.get_running_loop().call_later(SETTLE_S, self._settled)

    def _settled(self) -> None:
        self.ledger.lending.is_settling = False


class Sampled:
    """An `Nvml` whose samples go into the books: the audit judges by what these then say."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    async def use(self, card: CardId) -> Sample | None:
        """With a report of everybody on the card."""
        return await self._sampler.sample(card, exact_of=None)


def assemble(settings: BrokerSettings, daemon: Daemon) -> Parts:
    """All parts, none of them listening."""
    root, counters = settings.root, Counters()
    rows = RowsFile(root / ROWS, boot=boot_id())
    sizes = ContextSizes(read_sizes(root))
    ledger = Ledger(rows, context_in_limit=settings.context_in_limit, context_size=sizes.size)
    chores, hints = Chores(_defect), Hints(counters)
    folders, library, terms = Folders(root), settings.below_root(settings.library_folder), terms_of(settings)
    books = Books(
        ledger,
        specs=Specs(root),
        folders=folders,
        library=lambda: str(library_for_new(library)),
        counters=counters,
        write_line=line_writer(library),
        enforced_on=terms.enforced_on,
        will_use=lambda card: watch.prove(card),  # noqa: PLW0108  that NVML is awake when the first context is made
    )
    nvml = nvml_of(settings)
    client = UnaryClient(settings.below_root(settings.runtime))
    sampler = Sampler(
        ledger,
        nvml,
        hints=hints,
        counters=counters,
        signals_of=books.signals_of,
        learned=lambda card, size: parts.learned(card, size),  # noqa: PLW0108  parts come later
    )
    watch = Watch(ledger, sampler, chores=chores, ended=books.ended)
    leases = books.leases = Leases(
        Arbiter(policy=terms.policy_of, timing=terms.timing, first_epoch=lambda _key, _card: randbelow(EPOCHS)),
        served=books.served,
        terms=terms,
        counters=counters,
    )
    books.sessions = Sessions(
        ledger,
        identities=books.identities,
        hints=hints,
        counters=counters,
        watcher=watch,
        leases=leases.answers,
    )
    watch.parking = Parking(
        sampler=sampler,
        hints=hints,
        chores=chores,
        counters=counters,
        signals_of=books.signals_of,
        answer=decided,
    )
    books.parking = watch.parking
    parts = Parts(
        settings=settings,
        ledger=ledger,
        rows=rows,
        books=books,
        unannounced=Unannounced(ledger, books.identities),
        sampler=sampler,
        watch=watch,
        chores=chores,
        nvml=nvml,
        auditor=auditor_of(
            settings,
            books=books,
            samples=Sampled(sampler),
            runtime=Runtime(RuntimeClient(client)),
            metrics=daemon.metrics,
        ),
        runtime_client=client,
        sizes=sizes,
        models=Models(root),
        terms=terms,
        leases=leases,
    )
    parts.control = Control(root, books, tell=parts.tell)
    Figures(
        daemon.metrics,
        node=settings.node_name,
        counters=counters,
        facts=books.facts,
        sizes=sizes,
        free_rows=lambda: rows.free,
    )
    return parts


def terms_of(settings: BrokerSettings) -> Terms:
    """How time is metered."""
    return Terms(
        policy=settings.policy,
        policies=settings.policy_of_cards,
        timing=Timing(quantum_ns=round(settings.quantum_ms * 1e6)),
        loss=Loss.FREE if settings.compute_on_broker_loss == "free-run" else Loss.CLOSED,
    )


def _defect(error: BaseException) -> None:
    _log.error("unexpected error; this is a defect, please report it", exc_info=error)
