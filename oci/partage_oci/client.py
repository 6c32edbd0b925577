"""Client of this machine's agent, for commands.

PartageError
├── Refused             the agent refused the request, with its own sentence
└── AgentError          there is no valid answer
    ├── AgentAway           no agent listens, or answers in time
    │   └── OnlyForRoot         the agent does not accept requests of this user
    └── AgentNonsense       the answer is not a valid one
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from partage_oci.messages import (
    MAX_ANSWER_BYTES,
    Answer,
    Go,
    No,
    Question,
    Tell,
    Told,
    Wait,
    Waits,
    question_line,
    read_answer,
)
from partage_plugins.api.places import OCI_SOCKET
from partage_plugins.errors import DecodeError, PartageError, Refused

DEADLINE_S: Final = 5.0


class AgentError(PartageError):
    pass


class AgentAway(AgentError):
    pass


class OnlyForRoot(AgentAway):
    """This user may not send requests."""


class AgentNonsense(AgentError):
    pass


@dataclass(frozen=True)
class AgentClient:
    """The agent of the machine whose paths are below `root`."""

    root: Path
    deadline_s: float = DEADLINE_S

    @property
    def path(self) -> Path:
        return self.root / OCI_SOCKET

    def tell(self) -> Told:
        """Which containers hold a share; raises `Refused` and `AgentError`."""
        with self._asked(Tell(), self.deadline_s) as answers:
            answer = self._read(answers)
        if not isinstance(answer, Told):
            raise self._nonsense()
        return answer

    def wait(self, env: tuple[str, ...], waits: Callable[[str], None]) -> None:
        """Return once there is room for a container with these variables; `waits` gets the reason for waiting."""
        with self._asked(Wait(env=env), None) as answers:
            while isinstance(answer := self._read(answers), Waits):
                waits(answer.why)
        if not isinstance(answer, Go):
            raise self._nonsense()

    @contextmanager
    def _asked(self, question: Question, deadline_s: float | None) -> Generator[BinaryIO]:
        with socket.socket(socket.AF_UNIX) as peer:
            try:
                peer.settimeout(self.deadline_s)
                peer.connect(str(self.path))
                peer.sendall(question_line(question))
                peer.settimeout(deadline_s)
                with peer.makefile("rb") as answers:
                    yield answers
            except TimeoutError:
                raise AgentAway(
                    f"the agent at {self.path} did not answer within {self.deadline_s:g} s; see partage-agent's log"
                ) from None
            except PermissionError:
                raise OnlyForRoot(f"the agent at {self.path} answers root alone; ask as root") from None
            except OSError as error:
                raise AgentAway(
                    f"no agent answers at {self.path}: {error.strerror or error}; `partage up` starts it"
                ) from None

    def _read(self, answers: BinaryIO) -> Answer:
        line = answers.readline(MAX_ANSWER_BYTES)
        if not line.endswith(b"\n"):
            raise OSError("it closed the connection without an answer")
        try:
            answer = read_answer(line)
        except DecodeError as error:
            raise AgentNonsense(f"{error}; are partage-agent and this program of one version?") from None
        if isinstance(answer, No):
            raise Refused(answer.why)
        return answer

    def _nonsense(self) -> AgentNonsense:
        return AgentNonsense(f"the agent at {self.path} answered another question than was asked; restart it")
