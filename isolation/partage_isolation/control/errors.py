"""What is expected to go wrong when the broker is asked.

PartageError
├── Refused             the broker understood and says no: its own sentence
└── ControlError        there is no answer
    ├── BrokerAway          nobody listens, or nobody answers in time
    │   └── OnlyForRoot         somebody may, whom this user may not ask
    └── BrokerNonsense      what it answered is none of its answers

Messages say what failed, where, and what to do.
"""

from __future__ import annotations

from partage_plugins.errors import PartageError


class ControlError(PartageError):
    """There is no answer."""


class BrokerAway(ControlError):
    """Nobody answers."""


class OnlyForRoot(BrokerAway):
    """This user may not ask."""


class BrokerNonsense(ControlError):
    """What it answered is none of its answers."""
