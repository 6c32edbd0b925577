"""The containers of one pod's newest sandbox: the last attempt of each, how it is, and the wait for its end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import structlog
from msgspec.structs import replace

from partage_cli.machine.manager.engine import Engine
from partage_cli.machine.manager.life import Seen
from partage_cli.machine.runtime.messages import ContainerState, ListedContainer
from partage_plugins.errors import PartageError

_UNSEEN_END: Final = "Unknown"
"""The runtime's reason where it was not there when a container ended; the exit code is made up then."""
_AGAIN_S: Final = 1.0
_NEW: Final = ContainerState(
    state="created", started_ns=None, finished_ns=None, exit_code=None, reason="", message="", pid=None, log_path=""
)
_log = structlog.get_logger()


@dataclass(kw_only=True)
class Piece:
    """The last attempt of one container."""

    id: str
    attempt: int
    now: ContainerState = _NEW
    watch: asyncio.Task[None] | None = None

    @property
    def seen(self) -> Seen:
        if self.now.state == "unknown" or (self.now.state == "exited" and self.now.reason == _UNSEEN_END):
            return Seen(self.attempt, "lost")
        return Seen(self.attempt, self.now.state, self.now.exit_code or 0)

    @property
    def runs(self) -> bool:
        return self.now.state == "running"


class Owner(Protocol):
    def ended(self, name: str, piece: Piece) -> None:
        """One that ran has ended."""

    def touched(self) -> None:
        """There is something to do, perhaps."""

    def doubt(self) -> None:
        """Nothing that is known is sure."""


class Pieces:
    def __init__(self, engine: Engine, owner: Owner) -> None:
        self._engine, self._owner = engine, owner
        self._by_name: dict[str, Piece] = {}

    @property
    def all(self) -> Mapping[str, Piece]:
        return self._by_name

    @property
    def running(self) -> Mapping[str, Piece]:
        return {name: piece for name, piece in self._by_name.items() if piece.runs}

    @property
    def seen(self) -> Mapping[str, Seen]:
        return {name: piece.seen for name, piece in self._by_name.items()}

    def created(self, name: str, container_id: str, attempt: int) -> Piece | None:
        """A new attempt; the one that it replaces."""
        before = self._by_name.get(name)
        if before is not None:
            _end(before.watch)
        self._by_name[name] = Piece(id=container_id, attempt=attempt)
        return before

    def started(self, name: str, at_ns: int) -> None:
        piece = self._by_name[name]
        self._take(name, piece, replace(_NEW, state="running", started_ns=at_ns))

    async def look(self, name: str) -> ContainerState:
        """Asks how it is now."""
        piece = self._by_name[name]
        self._take(name, piece, await self._engine.container(piece.id))
        return piece.now

    async def learn(self, listed: Mapping[str, ListedContainer]) -> None:
        """These are the containers that there are."""
        for name in set(self._by_name) - set(listed):
            _end(self._by_name.pop(name).watch)
        for name, each in listed.items():
            known = self._by_name.get(name)
            if known is None or known.id != each.id:
                self.created(name, each.id, each.attempt)
            await self.look(name)

    def forget(self) -> None:
        for piece in self._by_name.values():
            _end(piece.watch)
        self._by_name.clear()

    def _take(self, name: str, piece: Piece, now: ContainerState) -> None:
        did_run, piece.now = piece.runs, now
        if piece.runs and (piece.watch is None or piece.watch.done()):
            piece.watch = asyncio.create_task(self._watch(name, piece), name=f"end of {name}")
        elif did_run and not piece.runs:
            self._owner.ended(name, piece)

    async def _watch(self, name: str, piece: Piece) -> None:
        try:
            now = await self._engine.ended(piece.id)
        except PartageError as error:
            _log.warning("the end of a container can't be waited for", container=name, why=str(error))
            await asyncio.sleep(_AGAIN_S)
            self._owner.doubt()
            return
        piece.watch = None
        if now is None:
            self._owner.doubt()
            return
        if self._by_name.get(name) is piece and piece.runs:
            self._take(name, piece, now)
        self._owner.touched()


def _end(watch: asyncio.Task[None] | None) -> None:
    if watch is not None:
        watch.cancel()
