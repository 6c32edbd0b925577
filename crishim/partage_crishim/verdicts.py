"""What the transport and those who decide say to each other. Pure.

The transport holds a call and asks; the answer is a verdict. When the call goes on upstream, the transport tells once
how it ended: a reservation must not outlive a create that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, Final

from msgspec import Struct

CREATE_CONTAINER: Final = "/runtime.v1.RuntimeService/CreateContainer"
RESTORE_POD: Final = "/runtime.v1.RuntimeService/RestorePod"
STATUS: Final = "/runtime.v1.RuntimeService/Status"
HELD: Final = frozenset({CREATE_CONTAINER, RESTORE_POD})
"""Calls whose request is read to its end before anything but its headers goes upstream."""


class Code(Enum):
    """The gRPC statuses that we answer with ourselves."""

    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class Ending(Enum):
    """How a call that went on upstream ended, as far as can be seen from here."""

    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """The client went away, or the connection broke: it may have been carried out."""


Ended = Callable[[Ending], None]


def _ignored(_: Ending) -> None: ...


class HeldCall(Struct, frozen=True):
    """A call that waits for a verdict; `message` is the request, whole and not compressed."""

    method: str
    message: bytes


class Pass(Struct, frozen=True):
    """Goes on as it came, byte for byte."""

    ended: Ended = _ignored


class Rewrite(Struct, frozen=True):
    """Goes on with this request in place of its own."""

    message: bytes
    ended: Ended = _ignored


class Refuse(Struct, frozen=True):
    """Is answered here, in one sentence that kubelet shows to the user; the runtime never sees it."""

    code: Code
    sentence: str


Verdict = Pass | Rewrite | Refuse
Decide = Callable[[HeldCall], Coroutine[Any, Any, Verdict]]
"""Never raises but for a cancelled call; whatever goes wrong inside becomes a verdict."""
