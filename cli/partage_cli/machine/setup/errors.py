"""Expected errors of setting a machine up and taking it down; each is one line with advice.

PartageError
└── SetupError
    ├── NotReadable    the file of an earlier `up` is damaged
    ├── Earlier        the file is of a version that ran containers itself
    ├── Unfit          this machine can't be used so
    ├── Held           another `up` or `down` is running
    └── NotStarted     a service does not start
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
