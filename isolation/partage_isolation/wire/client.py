"""The client of the broker's control socket, and the errors that it raises.

PartageError
├── Refused             the broker rejected the request, with its own message
└── ControlError        there is no valid response
    ├── BrokerAway          no broker listens, or it did not respond in time
    │   └── OnlyForRoot         a broker listens, and this user may not send requests
    └── MalformedAnswer      the response is invalid

Messages say what failed, where, and what to do.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from partage_isolation.wire.messages import (
    END,
    MAX_ANSWER_BYTES,
    MAX_QUESTION_BYTES,
    Answer,
    BrokerReport,
    Enter,
    Entered,
    GetReport,
    LimitsSet,
    Prepare,
    Prepared,
    Question,
    Rejection,
    Release,
    Released,
    SetLimits,
    Suspend,
    Suspended,
    question_line,
    read_answer,
)
from partage_plugins.api.places import BROKER_SOCKET
from partage_plugins.errors import DecodeError, PartageError, Refused


class ControlError(PartageError):
    pass


class BrokerAway(ControlError):
    pass


class OnlyForRoot(BrokerAway):
    """This user may not send requests to the broker."""


class MalformedAnswer(ControlError):
    """The response is not one of the protocol."""


DEADLINE_S: Final = 1.5
"""For one request: below the 2 s that crishim allows all plugins of a container."""
_PIECE: Final = 256 * 1024
_START: Final = "is partage-broker running?"

AnswerT = TypeVar("AnswerT", Prepared, LimitsSet, Suspended, Released, Entered, BrokerReport)


@dataclass(frozen=True)
class BrokerClient:
    """A client of the broker of the node whose paths lie below `root`."""

    root: Path
    deadline_s: float = DEADLINE_S

    @property
    def path(self) -> Path:
        return self.root / BROKER_SOCKET

    def prepare(self, question: Prepare) -> Prepared:
        """Prepare for a container; idempotent."""
        return self._asked(question, Prepared)

    def set_limits(self, question: SetLimits) -> LimitsSet:
        """Lower a limit, or reset it to the grant."""
        return self._asked(question, LimitsSet)

    def suspend(self, question: Suspend) -> Suspended:
        """Suspend or resume; repeat the request until it is done."""
        return self._asked(question, Suspended)

    def release(self, question: Release) -> Released:
        """Release a claim; idempotent."""
        return self._asked(question, Released)

    def enter(self, question: Enter) -> Entered:
        """Report that a container starts; idempotent."""
        return self._asked(question, Entered)

    def tell(self) -> BrokerReport:
        return self._asked(GetReport(), BrokerReport)

    def _asked(self, question: Question, expected: type[AnswerT]) -> AnswerT:
        """Send a request and return its response; raises `Refused` with the broker's message, or a `ControlError`."""
        line = self._exchanged(question_line(question))
        try:
            answer: Answer = read_answer(line)
        except DecodeError as error:
            raise MalformedAnswer(f"{error}; are partage-broker and this program of one version?") from None
        if isinstance(answer, Rejection):
            raise Refused(answer.why)
        if not isinstance(answer, expected):
            raise MalformedAnswer(f"the broker at {self.path} answered another question than was asked; restart it")
        return answer

    def _exchanged(self, line: bytes) -> bytes:
        until = time.monotonic() + self.deadline_s
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            try:
                peer.settimeout(self.deadline_s)
                _connect(peer, self.path)
                _send(peer, line, until)
                return _received(peer, until)
            except TimeoutError:
                raise BrokerAway(
                    f"the broker at {self.path} did not answer within {self.deadline_s:g} s; see partage-broker's log"
                ) from None
            except PermissionError:
                raise OnlyForRoot(f"the broker at {self.path} answers root alone; ask as root") from None
            except OSError as error:
                raise BrokerAway(f"no broker answers at {self.path}: {error.strerror or error}; {_START}") from None


def _connect(peer: socket.socket, path: Path) -> None:
    """Connect, through a descriptor of its folder if the path is longer than the 107 bytes of an address."""
    try:
        peer.connect(os.fspath(path))
    except OSError as error:
        if error.errno is not None:
            raise
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            peer.connect(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)


def _send(peer: socket.socket, line: bytes, until: float) -> None:
    if len(line) > MAX_QUESTION_BYTES:
        raise OSError(f"the question is {len(line)} bytes long, of {MAX_QUESTION_BYTES} that a broker reads")
    peer.settimeout(_left(until))
    peer.sendall(line)


def _received(peer: socket.socket, until: float) -> bytes:
    """Receive one complete line; all of it must arrive in time."""
    pieces, length = list[bytes](), 0
    while length <= MAX_ANSWER_BYTES:
        peer.settimeout(_left(until))
        piece = peer.recv(_PIECE)
        if not piece:
            raise OSError("it closed the connection without an answer")
        pieces.append(piece)
        length += len(piece)
        if piece.endswith(END):
            return b"".join(pieces)
    raise OSError(f"its answer is longer than {MAX_ANSWER_BYTES} bytes")


def _left(until: float) -> float:
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s
