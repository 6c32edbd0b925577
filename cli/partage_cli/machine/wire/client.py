"""The manager, as a command asks it. Synchronous, and quick to import: most commands take as long as their imports.

PartageError
├── Refused
│   └── Denied          the manager understood and says no: its code and its own sentence
└── ManagerError        there is no answer
    ├── ManagerAway         no manager listens, or it went away
    │   └── NotAllowed          there is one, and this user may not ask it
    └── ManagerNonsense     what it said is none of its answers
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from msgspec import Struct

from partage_cli.machine.wire.messages import (
    END,
    MANAGER_SOCKET,
    MAX_ANSWER_BYTES,
    MAX_QUESTION_BYTES,
    Answer,
    Code,
    Event,
    Hello,
    LogLine,
    No,
    Progress,
    Question,
    question_line,
    read_answer,
)
from partage_plugins.errors import DecodeError, PartageError, Refused

CONNECT_S: Final = 5.0
"""To connect and hear its first line."""
ANSWER_S: Final = 60.0
"""Without a word, where the answer needs no more than the manager's memory or one call of the runtime."""
_PIECE: Final = 256 << 10

LastT = TypeVar("LastT", bound=Struct)


class Denied(Refused):
    """The manager understood, and says no."""

    def __init__(self, code: Code, why: str) -> None:
        super().__init__(why)
        self.code: Final = code


class ManagerError(PartageError):
    """There is no answer that could be understood."""


class ManagerAway(ManagerError):
    """No manager listens, or it went away."""


class NotAllowed(ManagerAway):
    """This user may not ask."""


class ManagerNonsense(ManagerError):
    """What it said is none of its answers."""


class Lines:
    """Bytes become lines, and no line is longer than a manager writes. Pure."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0

    def took(self, data: bytes) -> list[bytes]:
        """The lines that `data` ends; raises `ManagerNonsense`."""
        *whole, rest = data.split(END)
        if whole:
            whole[0] = b"".join([*self._pieces, whole[0]])
            self._pieces, self._length = [], 0
        self._pieces.append(rest)
        self._length += len(rest)
        if max(self._length, *map(len, whole), 0) > MAX_ANSWER_BYTES:
            raise ManagerNonsense(f"the manager sent a line of more than {MAX_ANSWER_BYTES} bytes; see its log")
        return whole


class Conversation:
    """One connection. A question is asked once the last one is answered: by a last answer, or by `Denied`."""

    def __init__(self, peer: socket.socket, where: str) -> None:
        self._peer, self._where = peer, where
        self._lines = Lines()
        self._arrived: list[Answer] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: type[BaseException] | None, _e: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Gives up what was asked and is not answered."""
        self._peer.close()

    def fileno(self) -> int:
        return self._peer.fileno()

    def ask(self, question: Question) -> None:
        line = question_line(question)
        if len(line) > MAX_QUESTION_BYTES:
            raise Refused(f"what is asked is {len(line)} bytes long, of {MAX_QUESTION_BYTES} that the manager reads")
        self._peer.settimeout(CONNECT_S)
        try:
            self._peer.sendall(line)
        except OSError as error:
            raise self._away(error) from None

    def answer(self, *, deadline_s: float | None = None) -> Answer:
        """The next one; without a deadline it waits for ever. Raises `Denied` for a no."""
        until = None if deadline_s is None else time.monotonic() + deadline_s
        while not self._arrived:
            left_s = None if until is None else until - time.monotonic()
            if left_s is not None and left_s <= 0:
                raise ManagerAway(f"the manager at {self._where} did not answer within {deadline_s:g} s; see its log")
            self._peer.settimeout(left_s)
            try:
                self._take(self._peer.recv(_PIECE))
            except TimeoutError:
                continue
            except OSError as error:
                raise self._away(error) from None
        return granted(self._arrived.pop(0))

    def ready(self) -> list[Answer]:
        """Those that are there, a no too, after one look at the connection."""
        self._peer.setblocking(False)
        try:
            self._take(self._peer.recv(_PIECE))
        except BlockingIOError:
            pass
        except OSError as error:
            raise self._away(error) from None
        arrived, self._arrived = self._arrived, []
        return arrived

    def told(
        self,
        question: Question,
        expected: type[LastT],
        *,
        progress: Callable[[Progress], None] | None = None,
        deadline_s: float | None = ANSWER_S,
    ) -> LastT:
        """The last answer to a question. With `progress` it may take as long as it takes."""
        self.ask(question)
        while True:
            answer = self.answer(deadline_s=None if progress else deadline_s)
            if isinstance(answer, Progress):
                if progress:
                    progress(answer)
            elif isinstance(answer, expected):
                return answer
            else:
                raise ManagerNonsense(
                    f"the manager at {self._where} answered another question than was asked; are both of one version?"
                )

    def stream(self, question: Question) -> Iterator[LogLine | Event]:
        """All that it tells, until its end."""
        self.ask(question)
        while isinstance(answer := self.answer(), LogLine | Event):
            yield answer

    def _take(self, data: bytes) -> None:
        if not data:
            raise OSError("it closed the connection")
        for line in self._lines.took(data):
            try:
                self._arrived.append(read_answer(line))
            except DecodeError as error:
                raise ManagerNonsense(f"{error}; are the manager and this program of one version?") from None

    def _away(self, error: OSError) -> ManagerAway:
        return ManagerAway(f"the manager at {self._where} went away: {_why(error)}; see its log, or: sudo partage up")


@contextmanager
def conversation(root: Path) -> Generator[tuple[Conversation, Hello]]:
    """With the manager of the machine whose paths lie below `root`, once it has said its `Hello`."""
    path = root / MANAGER_SOCKET
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with Conversation(peer, str(path)) as talk:
        peer.settimeout(CONNECT_S)
        try:
            peer.connect(os.fspath(path))
        except PermissionError:
            raise NotAllowed(f"the manager at {path} answers {_allowed(path)} alone; ask with sudo") from None
        except OSError as error:
            raise ManagerAway(f"no manager answers on {path}: {_why(error)}; start it with: sudo partage up") from None
        hello = talk.answer(deadline_s=CONNECT_S)
        if not isinstance(hello, Hello):
            raise ManagerNonsense(f"what listens on {path} did not begin as a manager does; start it with: partage up")
        yield talk, hello


def granted(answer: Answer) -> Answer:
    """The answer, where it is not a no; raises `Denied`."""
    if isinstance(answer, No):
        raise Denied(answer.code, answer.why)
    return answer


def _allowed(path: Path) -> str:
    """Who may ask: what the socket itself says, where one may look at it."""
    import grp  # noqa: PLC0415  for a refusal alone

    try:
        found = path.stat()
        group = grp.getgrgid(found.st_gid).gr_name if found.st_mode & 0o060 else ""
    except (OSError, KeyError):
        return "root"
    return f"root and the group {group}" if group and group != "root" else "root"


def _why(error: OSError) -> str:
    return error.strerror or str(error) or "no answer in time"
