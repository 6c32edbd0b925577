"""Watches processes that create or delete containers, until they exit.

They become the engine's runtime by `execve`, and remain the same processes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from partage_base.peers import NoProcess, Peer, peer_named
from partage_oci.records import EngineRecord


class Processes:
    def __init__(self, ended: Callable[[str], None]) -> None:
        """`ended` is called with the container's id for each process that exits."""
        self._ended = ended
        self._watched = dict[int, str]()
        self._creators = dict[str, int]()

    def is_created(self, id_: str) -> bool:
        """Whether the process that creates this container is running."""
        return id_ in self._creators

    def creates(self, id_: str, peer: Peer) -> None:
        """Watch a creator, replacing an earlier one; the caller keeps its own descriptor."""
        self.leave(id_)
        self._creators[id_] = self._watch(id_, peer)

    def deletes(self, id_: str, peer: Peer) -> None:
        """Watch a process whose exit alone matters."""
        self._watch(id_, peer)

    def find(self, record: EngineRecord) -> None:
        """Watch the creator that an earlier agent watched, if it is still running."""
        try:
            peer = peer_named(record.pid)
        except NoProcess:
            return
        try:
            if peer.start == record.start:
                self.creates(record.id, peer)
        finally:
            os.close(peer.pidfd)

    def leave(self, id_: str) -> None:
        """Stop watching the container's creator."""
        descriptor = self._creators.pop(id_, None)
        if descriptor is not None:
            self._unwatch(descriptor)

    def close(self) -> None:
        for descriptor in tuple(self._watched):
            self._unwatch(descriptor)
        self._creators.clear()

    def _watch(self, id_: str, peer: Peer) -> int:
        descriptor = os.dup(peer.pidfd)
        self._watched[descriptor] = id_
        asyncio.get_running_loop().add_reader(descriptor, self._gone, descriptor)
        return descriptor

    def _unwatch(self, descriptor: int) -> str:
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
        return self._watched.pop(descriptor)

    def _gone(self, descriptor: int) -> None:
        id_ = self._unwatch(descriptor)
        if self._creators.get(id_) == descriptor:
            del self._creators[id_]
        self._ended(id_)
