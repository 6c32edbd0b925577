"""All expected errors of the rig.

RigError
├── MachineUnfit       this machine lacks something; the message says what to install or allow
├── BuildFailed        a program of the rig could not be built; with the tail of its log
├── ComponentFailed    a component ended by itself or did not stop; with the tail of its log
├── NeverHappened      a wait ran out; with its subject, the last state, and the tails of logs
└── Refused            the API server returned an error; with its status, reason and message
"""

from __future__ import annotations


class RigError(Exception):
    """What failed, on what, and what to do, in one line; a log's tail may follow."""


class MachineUnfit(RigError):
    """This machine lacks something that the rig needs."""


class BuildFailed(RigError):
    """A program could not be built."""


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
