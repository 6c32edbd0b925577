"""Expected errors of an installation, as one tree.

PartageError
└── InstallationError
    ├── UnfitNode       the node can't be switched, or get that version, as it is: what prevents it, and what to do
    ├── JournalWrong    the journal can't be read
    ├── AnotherWorks    another command is changing this node
    ├── BadTree         the tree of programs is incomplete or damaged
    ├── StepFailed      a step failed; the node works as it did before
    ├── NotProved       another version failed its trial; the one before is in force again
    ├── PodsStay        pods with cards on this node, or its advertiser, do not leave
    └── TurnedBack      the switch was rolled back: kubelet uses the container runtime again
"""

from __future__ import annotations

from partage_plugins.errors import PartageError


class InstallationError(PartageError):
    """Base of all expected errors."""


class UnfitNode(InstallationError):
    """The node can't be switched, or get that version: what prevents it, and what to do."""


class JournalWrong(InstallationError):
    """The journal can't be read, or is newer than this program."""


class AnotherWorks(InstallationError):
    """Another command is changing this node."""


class BadTree(InstallationError):
    """Files are missing, or differ from the manifest."""


class StepFailed(InstallationError):
    """A step failed; the node works as before."""


class NotProved(InstallationError):
    """The version before is in force again."""


class PodsStay(InstallationError):
    """Pods with cards on this node, or its advertiser, do not leave."""


class TurnedBack(InstallationError):
    """Kubelet uses the container runtime again."""
