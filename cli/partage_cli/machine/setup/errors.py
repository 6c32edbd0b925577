"""What is expected to go wrong when a machine is set up or taken down; each is one line that says what to do.

PartageError
└── SetupError
    ├── NotReadable    what an earlier `up` wrote
    ├── Earlier        an `up` of a version that ran containers itself
    ├── Unfit          this machine can't be used so
    ├── Held           another `up` or `down` is at work
    └── NotStarted     a service that does not come up
"""

from __future__ import annotations

from partage_plugins.errors import PartageError


class SetupError(PartageError):
    pass


class NotReadable(SetupError):
    pass


class Earlier(SetupError):
    pass


class Unfit(SetupError):
    pass


class Held(SetupError):
    pass


class NotStarted(SetupError):
    pass
