"""Errors that the scheduler expects of itself; errors of its peers are in the trees of their packages.

PartageError
└── SchedulerError
    ├── LeadLost        another scheduler may lead now: exit code 1, and a restart
    ├── Unfit           a request that the extender can't answer: an HTTP status
    └── Unreadable      the body of such a request can't be decoded

Invalid keys, plugins or access raise `BadConfiguration`: exit code 78. A plugin whose state is inconsistent twice
(`PluginBroken`) or that hangs ends the process with exit code 1, because its decisions would be invalid.
Messages say what failed, on what, and what to do.
"""

from __future__ import annotations

from partage_plugins.errors import PartageError


class SchedulerError(PartageError): ...


class LeadLost(SchedulerError):
    """Another scheduler may lead now."""
