"""Expected errors of the API server, as one tree.

    PartageError
    └── KubeError
        ├── BadAccess      address and credentials of the API server are missing or unusable
        ├── BadName        an object can't have this name, so nothing was sent
        ├── Unreachable    no response: refused, cut, too slow, an invalid certificate
        ├── MalformedResponse   no JSON of that type, or a redirect
        │   └── TooLarge       larger than the bound
        └── StatusError    an error status: with its reason and message
            ├── NotAllowed     401 or 403
            ├── NotFound       404
            ├── Conflict       409: changed meanwhile, or exists already
            ├── Gone           410: too old to continue from; list again
            ├── Throttled      429: too many requests
            └── ServerFailed   5xx

Messages say which call, what happened and what to do. Foreign text is shortened and made printable.
"""

from __future__ import annotations

from typing import Final

from partage_plugins.errors import PartageError
from partage_plugins.text import one_line

LONGEST_WORDS: Final = 512
HEAD_BYTES: Final = 4096
"""How much of a response that is too large is awaited and kept: enough for an object's names."""
_IS_IT_UP: Final = "is the API server up and reachable from here?"


class KubeError(PartageError):
    """Base of all expected errors."""


class BadAccess(KubeError):
    """The address and credentials of the API server are missing or unusable."""


class BadName(KubeError):
    """No object can have that name."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(what, name)
        self.what, self.name = what, name

    def __str__(self) -> str:
        return (
            f"{self.what} {_shown(repr(self.name))}: allowed: at most 253 of a-z, 0-9, '-' and '.', "
            "with a letter or digit at both ends and around each '.'"
        )


class Unreachable(KubeError):
    def __init__(self, call: str, why: str, *, may_be_done: bool, advice: str = _IS_IT_UP) -> None:
        """`may_be_done`: the call may have reached the server, so it may have been carried out."""
        super().__init__(call, why)
        self.call, self.why, self.may_be_done, self.advice = call, _shown(why), may_be_done, advice

    def __str__(self) -> str:
        return f"{self.call}: {self.why}; {self.advice}"


class MalformedResponse(KubeError):
    """A response that can't be decoded, or a redirect."""

    def __init__(self, call: str, why: str) -> None:
        super().__init__(call, why)
        self.call, self.why = call, why

    def __str__(self) -> str:
        return f"{self.call}: {_shown(self.why)}; is it an API server that answers there, and no proxy or login page?"


class TooLarge(MalformedResponse):
    """A response larger than the bound."""

    def __init__(self, call: str, why: str, head: bytes) -> None:
        """`head` is the beginning of the body."""
        super().__init__(call, why)
        self.head = head[:HEAD_BYTES]

    def __str__(self) -> str:
        return f"{self.call}: {_shown(self.why)}"


class StatusError(KubeError):
    """The API server answered with an error status."""

    def __init__(self, call: str, *, status: int, reason: str = "", message: str = "") -> None:
        """`reason` is Kubernetes' one-word reason, `message` is for people; either may be empty."""
        super().__init__(call, status, reason, message)
        self.call, self.status = call, status
        self.reason, self.message = _shown(reason), _shown(message)

    @property
    def advice(self) -> str:
        """What to do, if that is always the same."""
        return ""

    def __str__(self) -> str:
        words = " ".join(filter(None, (str(self.status), self.reason)))
        said = f"{self.call}: {words}: {self.message}" if self.message else f"{self.call}: {words}"
        return f"{said}; {self.advice}" if self.advice else said


class NotAllowed(StatusError):
    """It does not accept our credentials (401), or our request (403)."""

    @property
    def advice(self) -> str:
        return "renew the credentials" if self.status == 401 else "grant it by RBAC"  # noqa: PLR2004


class NotFound(StatusError):
    """There is no such object, or no such resource."""


class Conflict(StatusError):
    """The object changed meanwhile, or exists already."""


class Gone(StatusError):
    """The resource version is too old to continue from."""


class _Busy(StatusError):
    def __init__(
        self, call: str, *, status: int, reason: str = "", message: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(call, status=status, reason=reason, message=message)
        self.retry_after_s = retry_after_s


class Throttled(_Busy):
    pass


class ServerFailed(_Busy):
    """An error of its own, or of a proxy or load balancer in front of it."""


def _shown(text: str) -> str:
    return one_line(text, LONGEST_WORDS)
