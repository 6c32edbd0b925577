"""What the manager expects to go wrong.

PartageError
└── Objection           no, with the code and the sentence that the asker gets
"""

from __future__ import annotations

from typing import Final

from partage_base.cri.errors import PeerError, PeerRefused
from partage_cli.machine.wire.messages import Code, No
from partage_plugins.errors import PartageError

_FAILED_PRECONDITION: Final = 9
"""The status by which crishim refuses."""


class Objection(PartageError):
    def __init__(self, code: Code, why: str) -> None:
        super().__init__(code, why)
        self.code: Final[Code] = code
        self.why: Final = why

    def __str__(self) -> str:
        return self.why

    @property
    def answer(self) -> No:
        return No(code=self.code, why=self.why or "no reason is known; see the manager's log")


def objection_of(error: PartageError) -> Objection:
    """What an asker hears of it: crishim's refusals and the runtime's in their own words."""
    if isinstance(error, Objection):
        return error
    if isinstance(error, PeerRefused):
        return Objection("refused" if error.status == _FAILED_PRECONDITION else "runtime", error.words)
    if isinstance(error, PeerError):
        return Objection("not-ready", f"the container runtime does not answer: {error}; see `systemctl status`, or up")
    return Objection("refused", str(error))
