"""How another program speaks to the manager: JSON lines on its socket, by what the documents say and nothing of ours.

manager = Manager(socket)
last = manager.ask({"do": "ps"})          # {"is": "pods", "pods": [...]}
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]
_MORE: Final = frozenset({"hello", "progress", "log", "event"})
_PATIENCE_S: Final = 600.0


class Gone(Exception):
    """There is no manager, or it went before its last line: what became of the question is not known."""


@dataclass(frozen=True)
class Manager:
    path: Path
    patience_s: float = _PATIENCE_S

    def ask(self, question: Json, *, told: Callable[[Json], object] = lambda _: None) -> Json:
        """The last line of the answer; those before it are told."""
        for line in self.lines(question):
            if line["is"] not in _MORE:
                return line
            told(line)
        raise Gone(f"{self.path}: the manager went in the midst of {question['do']}")

    def lines(self, question: Json) -> Iterator[Json]:
        """All lines, its greeting first, until one side closes the connection."""
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(self.patience_s)
            try:
                peer.connect(str(self.path))
                peer.sendall(json.dumps(question).encode() + b"\n")
                with peer.makefile("rb") as answer:
                    for line in answer:
                        yield json.loads(line)
            except (ConnectionError, FileNotFoundError) as error:
                raise Gone(f"{self.path}: {error}") from None
