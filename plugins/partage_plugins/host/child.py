"""The child process: loads the node plugins, answers one question at a time, and ends with its parent.

Its arguments are the descriptor of the socket, the descriptor of the black box, and its memory limit in bytes. Output
of plugins goes to stderr. If a plugin runs out of memory, its call fails and the process is replaced.
"""

from __future__ import annotations

import gc
import socket
import sys
import traceback
from pathlib import PurePosixPath
from typing import Final

import msgspec

from partage_plugins.api.containers import Granted
from partage_plugins.api.names import Kind
from partage_plugins.api.node import NodeContext
from partage_plugins.codecs.allocation import decode_grants
from partage_plugins.codecs.parts import read_parts
from partage_plugins.errors import DecodeError, PluginError, Refused
from partage_plugins.framework.node import NodeFramework
from partage_plugins.hooks import NODE_GROUP
from partage_plugins.hooks import node as node_hooks
from partage_plugins.host import messages
from partage_plugins.host.blackbox import BlackBox, RecordedActivity
from partage_plugins.host.confinement import confine
from partage_plugins.registry.entry_points import from_paths, installed
from partage_plugins.registry.registry import Registry

EXIT_OUT_OF_MEMORY: Final = 3
_PIECE_BYTES: Final = 64 * 1024


class Child:
    """The plugins of this process."""

    def __init__(self, box: BlackBox) -> None:
        self._activity = RecordedActivity(box)
        self._registry = Registry(node_hooks)
        self._framework = NodeFramework(self._registry)
        self._parts: dict[Kind, tuple[bytes, object]] = {}
        self.is_exhausted = False
        """A plugin ran out of memory: nothing in this process is reliable after that."""

    def answer(self, question: messages.Question) -> messages.Reply:
        """The reply to any question; a plugin's error becomes a reply too."""
        try:
            match question:
                case messages.Start():
                    return self._start(question)
                case messages.Adjust():
                    adjusted = self._framework.adjust(question.container, self._granted(question))
                    return messages.AdjustedReply(id=question.id, adjusted=adjusted)
                case messages.Removed():
                    self._framework.removed(question.key)
                case messages.Stop():
                    self._framework.stopping()
            return messages.Done(id=question.id)
        except (Refused, DecodeError) as no:
            return messages.Refusal(id=question.id, why=str(no))
        except PluginError as error:
            self.is_exhausted = isinstance(error.__cause__, MemoryError)
            return messages.Fault(
                id=question.id,
                error=type(error).__name__,  # type: ignore[arg-type]
                plugin=error.plugin,
                hook=error.hook,
                why=error.why,
                detail=error.detail,
                traceback="".join(traceback.format_exception(error.__cause__)) if error.__cause__ else "",
            )

    def _start(self, start: messages.Start) -> messages.Started:
        candidates = installed(NODE_GROUP) if start.paths is None else from_paths(start.paths)
        report = self._registry.load(self._activity.watched(candidates), frozenset(start.blocked))
        self._framework = NodeFramework(self._registry, activity=self._activity, traced=start.traced)
        context = NodeContext(
            node=start.node,
            role=start.role,
            root=PurePosixPath(start.root),
            wake=lambda: None,  # only the advertiser runs discovery
            driver_root=PurePosixPath(start.driver_root),
            host=PurePosixPath(start.host),
        )
        faults = [*report.faults, *self._framework.started(context)]
        self._activity.leave()
        gc.collect()
        gc.freeze()  # imports stay alive: no container should wait for a garbage collection of them
        return messages.Started(
            id=start.id,
            loaded=report.loaded,
            kinds=dict(self._framework.owners),
            faults=tuple(str(fault) for fault in faults),
            blocked=report.blocked,
            unknown_blocked=report.unknown_blocked,
        )

    def _granted(self, question: messages.Adjust) -> Granted:
        grants = {kind: msgspec.Raw(raw) for kind, raw in question.grants.items()}
        return Granted(
            gen=question.gen,
            grants=decode_grants(grants, self._registry.kinds),
            parts={kind: self._part(kind, raw) for kind, raw in question.parts.items()},
            suspended=question.suspended,
        )

    def _part(self, name: Kind, raw: bytes) -> object:
        """A kind's part of the inventory; decoded only when it changes, which is rare."""
        known = self._parts.get(name)
        if known is None or known[0] != raw:
            types = {kind.name: kind.part for kind in self._registry.kinds}
            part = read_parts("inventory", {name: msgspec.Raw(raw)}, types, at="$.kinds")[name]
            known = self._parts[name] = (raw, part)
        return known[1]


def main(arguments: list[str]) -> int:
    """Answers questions until the parent sends `Stop` or is gone."""
    descriptor, box, memory_bytes = (int(argument) for argument in arguments)
    confine(memory_bytes)
    connection = socket.socket(fileno=descriptor)
    child, incoming = Child(BlackBox(box)), bytearray()
    while (question := _received(connection, incoming)) is not None:
        connection.sendall(messages.framed(child.answer(question)))
        if child.is_exhausted:
            return EXIT_OUT_OF_MEMORY
        if isinstance(question, messages.Stop):
            break
    return 0


def _received(connection: socket.socket, incoming: bytearray) -> messages.Question | None:
    """The next question, or None if the parent is gone; `incoming` keeps the bytes after it."""
    while (body := messages.taken(incoming)) is None:
        piece = connection.recv(_PIECE_BYTES)  # may be short: a plugin may use signals
        if not piece:
            return None
        incoming += piece
    return messages.decode_question(body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
