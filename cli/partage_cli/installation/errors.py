"""What is expected to go wrong with an installation, as one tree.

PartageError
└── InstallationError
    ├── UnfitNode       the node cannot be switched as it is: what stands in the way, and what to use there instead
    ├── JournalWrong    the journal cannot be read
    ├── AnotherWorks    another command changes this node now
    ├── BadTree         the tree of programs is not whole
    ├── DiskFull        there is no room for a tree
    ├── StepFailed      a step could not be done; the node works as it did before
    ├── UnfitVersion    another version cannot follow the one in force; nothing was changed
    ├── NotProved       another version did not prove itself; the one before is in force again
    ├── PodsStay        pods that have cards here do not leave
    ├── AdvertiserStays the node's advertiser goes on telling the cluster of its cards
    └── TurnedBack      the switch went back: kubelet speaks to the container runtime again
"""

from __future__ import annotations

from partage_plugins.errors import PartageError


class InstallationError(PartageError):
    """Base of everything expected here."""


class UnfitNode(InstallationError):
    """What stands in the way, and what to do."""


class JournalWrong(InstallationError):
    """It cannot be read, or is newer than this program."""


class AnotherWorks(InstallationError):
    """Another command changes this node now."""


class BadTree(InstallationError):
    """Files are missing, or are not what the manifest says."""


class DiskFull(InstallationError):
    """There is no room, and nothing was written."""


class StepFailed(InstallationError):
    """A step could not be done; what the node does is as it was."""


class UnfitVersion(InstallationError):
    """Another version cannot follow the one in force."""


class NotProved(InstallationError):
    """The version before is in force again."""


class PodsStay(InstallationError):
    """Pods that have cards here do not leave."""


class AdvertiserStays(InstallationError):
    """It goes on telling the cluster of cards that are shared no more."""


class TurnedBack(InstallationError):
    """Kubelet speaks to the container runtime again."""
