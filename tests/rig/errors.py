"""Everything that is expected to go wrong with the rig, as one tree.

RigError
├── MachineUnfit       this machine lacks something; the message says what to install or allow
├── BuildFailed        a program of the rig could not be made; the tail of its log
├── ComponentFailed    a component ended by itself or did not stop; the tail of its log
├── NeverHappened      a wait ran out; what was waited for, what was seen last, and the tails of logs
└── Refused            the API server said no; with its status, reason and message
"""

from __future__ import annotations


class RigError(Exception):
    """What failed, on what, and what to do, in one line; a log's tail may follow."""


class MachineUnfit(RigError):
    """This machine lacks something that the rig needs."""


class BuildFailed(RigError):
    """A program could not be made."""


class ComponentFailed(RigError):
    """A component ended by itself or did not stop."""


class NeverHappened(RigError):
    """A wait ran out."""


class Refused(RigError):
    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
