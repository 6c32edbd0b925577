"""The interface between the transport and admission. Pure.

The transport intercepts a call and requests a decision. If the call is forwarded, the transport reports once how it
ended: a reservation must not outlive a create that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, Final

from msgspec import Struct

CREATE_CONTAINER: Final = "/runtime.v1.RuntimeService/CreateContainer"
RESTORE_POD: Final = "/runtime.v1.RuntimeService/RestorePod"
STATUS: Final = "/runtime.v1.RuntimeService/Status"
INTERCEPTED: Final = frozenset({CREATE_CONTAINER, RESTORE_POD})
"""Calls whose request is read completely before anything but its headers is sent upstream."""


class Code(Enum):
    """The gRPC status codes that we reply with ourselves."""

    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class Ending(Enum):
    """The outcome of a forwarded call, as far as it is visible here."""

    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """The client disconnected, or the connection broke: the call may have been carried out."""


Ended = Callable[[Ending], None]


def _ignored(_: Ending) -> None: ...


class InterceptedCall(Struct, frozen=True):
    """A call that waits for a decision; `message` is the request, complete and uncompressed."""

    method: str
    message: bytes


class Pass(Struct, frozen=True):
    """The call is forwarded byte for byte."""

    ended: Ended = _ignored


class Rewrite(Struct, frozen=True):
    """The call is forwarded with this request in place of its own."""

    message: bytes
    ended: Ended = _ignored


class Refuse(Struct, frozen=True):
    """The call is answered here, with one sentence that kubelet shows to the user; the runtime never sees it."""

    code: Code
    sentence: str


Decision = Pass | Rewrite | Refuse
Decide = Callable[[InterceptedCall], Coroutine[Any, Any, Decision]]
"""Raises only on cancellation; every error inside becomes a decision."""
