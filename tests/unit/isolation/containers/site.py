"""A broker's containers with the real ledger, folders and files, without processes, samples and a runtime."""

from __future__ import annotations

import socket
from collections.abc import Collection
from pathlib import Path
from typing import Any, Self, cast

from partage_isolation.ledger.ledger import Ledger
from partage_isolation.library.current import make_current
from partage_isolation.library.pages import install_page
from partage_isolation.metrics import Counters
from partage_isolation.migration.room import MigrationSettings
from partage_isolation.store.folders import OBJECTS, PARENT
from partage_isolation.store.row_bounds import RowBounds
from partage_isolation.store.specs import BUDGETS_FOLDER
from partage_isolation.timeslices.arbiter import Arbiter
from partage_isolation.wire.connection import Listener
from partage_isolation.wire.containers import Containers
from partage_isolation.wire.migration import Migration
from partage_isolation.wire.served import Registry
from partage_isolation.wire.timer import Timer
from partage_isolation.wire.timeslices import Terms, TimeSlices
from partage_plugins.api.names import CardId, ContainerKey
from support.broker import CARD
from unit.isolation.ledger.keeping import Kept
from unit.isolation.timeslices.scene import FakeAlarm


class Nobody:
    """Stands for sessions, samples and questions, which do not exist here."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_more: None

    def listener(self, _served: object, listening: socket.socket) -> Listener:
        """No process connects."""
        return Listener(listening, on_connection=lambda _: None, counters=Counters())

    async def recall(self, *_: object) -> None:
        """No process has credit."""


class Site:
    """A broker's ledger, time slices, folders and files below a root; its sockets are closed at the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.registry.close()

    def __init__(self, root: Path) -> None:
        library = root / "library"
        (library / "1").mkdir(parents=True, exist_ok=True)
        for name in OBJECTS:
            (library / "1" / name).write_bytes(bytes(4096))
        make_current(library, "1")
        install_page(library)
        self.root, self.ledger, self.bounds, counters = root, Ledger(Kept()), RowBounds(), Counters()
        self.registry = Registry(self.bounds)
        terms, nobody = Terms("virtual-time"), cast("Any", Nobody())
        self.arbiter = Arbiter(policy=terms.policy_of)
        timeslices = TimeSlices(
            self.arbiter,
            registry=self.registry,
            terms=terms,
            counters=counters,
            timer=lambda ring: cast("Timer", FakeAlarm(ring)),
        )
        self.containers = Containers(
            self.ledger,
            self.registry,
            root=root,
            library=library,
            sessions=nobody,
            parking=nobody,
            watch=nobody,
            timeslices=timeslices,
            moving=Migration(
                self.ledger,
                timeslices=timeslices,
                registry=self.registry,
                card_bytes=lambda _card: None,
                pace=MigrationSettings(),
                timer=lambda ring: cast("Timer", FakeAlarm(ring)),
            ),
            permit=self._permit,
            background_tasks=nobody,
            checkpoints=nobody,
        )
        self.permitted: list[tuple[set[ContainerKey], int]] = []

    async def _permit(self, keys: Collection[ContainerKey], _card: CardId, limit_bytes: int) -> None:
        self.permitted.append((set(keys), limit_bytes))

    @property
    def limits(self) -> dict[str, tuple[int, int]]:
        """The memory and the share of each container."""
        facts = {each.container: each.cards[CARD] for each in self.containers.facts()}
        return {name: (card.spec.memory_in_force, card.spec.share_in_force) for name, card in facts.items()}

    @property
    def folders(self) -> set[str]:
        return {each.name for each in (self.root / PARENT).iterdir()}

    @property
    def budget_files(self) -> int:
        return len(list((self.root / BUDGETS_FOLDER).iterdir()))
