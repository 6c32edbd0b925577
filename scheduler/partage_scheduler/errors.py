"""What the scheduler expects to go wrong by itself; what its peers do wrong is in their rooms' trees.

PartageError
└── SchedulerError
    ├── LeadLost        another scheduler may lead now: exit code 1, and a new start
    ├── Unfit           who asks the extender asks for what it can't answer: an HTTP status
    └── Unreadable      the body of such a question can't be read

What it was told that can't be (keys, plugins, access) is `BadConfiguration`: exit code 78. A plugin that lost count
twice (`PluginBroken`) or hangs ends the process with 1: what it would decide is worth nothing.
Messages say what failed, on what, and what to do.
"""

from __future__ import annotations

from partage_plugins.errors import PartageError


class SchedulerError(PartageError): ...


class LeadLost(SchedulerError):
    """Another scheduler may lead now."""
