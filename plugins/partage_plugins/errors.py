"""Everything that partage expects to go wrong at its borders, as one tree.

    PartageError
    ├── DecodeError         outside data is not what its contract says: which path, which value, what is allowed
    ├── SignatureRefused    an allocation's signature is missing, made by an unknown key, or wrong
    ├── Refused             the answer is no, in one sentence that the user can act on
    │   └── DialectConflict     one pod asks for one kind in two dialects
    └── PluginError         a plugin did what it may not; names the plugin and the hook
        ├── PluginNotLoaded     it could not be imported, made or registered
        ├── PluginFailed        it raised
        ├── PluginNonsense      it returned what its hook may not return
        ├── AdjustmentConflict  two plugins set one field differently
        ├── PluginHung          it did not return in time and its process was ended
        ├── PluginCrashed       its process died
        └── PluginBroken        it failed again right after a reset: the process must not go on

Bases say what a caller does about it: refuse the input, refuse the pod, distrust the plugin. Messages say what failed,
on what, and what to do. Anything else that is raised is a defect of ours and keeps its traceback.
"""

from __future__ import annotations

_LONGEST_PATH = 160
_LONGEST_VALUE = 120
_LONGEST_ALLOWED = 240


class PartageError(Exception):
    """Base of everything that is expected to go wrong."""


class DecodeError(PartageError):
    """Outside data is not what its contract says."""

    def __init__(self, what: str, *, path: str, value: str, allowed: str) -> None:
        """`what` is being read (`allocation`), `path` is where in it, `allowed` is what should have stood there."""
        self.what = what
        self.path = _shown(path, _LONGEST_PATH)
        self.value = _shown(value, _LONGEST_VALUE)
        self.allowed = _shown(allowed, _LONGEST_ALLOWED)
        super().__init__(what, self.path, self.value, self.allowed)

    def __str__(self) -> str:
        return f"{self.what}: {self.path} is {self.value}; allowed: {self.allowed}"


class SignatureRefused(PartageError):
    """An allocation whose signature does not hold."""


class Refused(PartageError):
    """No, and why: one stable sentence for the user. Plugins raise it to refuse a pod or a container."""


class DialectConflict(Refused):
    """One pod asks for one kind in two dialects."""


class PluginError(PartageError):
    """A plugin did what it may not."""

    def __init__(self, plugin: str, hook: str, why: str, detail: str = "") -> None:
        """`detail` may hold values of users and belongs into logs alone; `why` may be shown to everyone."""
        super().__init__(plugin, hook, why, detail)
        self.plugin, self.hook, self.why, self.detail = plugin, hook, why, detail

    def __str__(self) -> str:
        return ": ".join(filter(None, (f"plugin {self.plugin}", self.hook, self.why, self.detail)))


class PluginNotLoaded(PluginError):
    """It could not be imported, made or registered; `hook` is the step that failed."""


class PluginFailed(PluginError):
    """It raised; the exception is this one's cause."""


class PluginNonsense(PluginError):
    """It returned what its hook may not return."""


class AdjustmentConflict(PluginError):
    """Two plugins set one field of a container differently; `plugin` names both."""


class PluginHung(PluginError):
    """It did not return in time, and its process was ended."""


class PluginCrashed(PluginError):
    """The process that runs the plugin died in a call."""


class PluginBroken(PluginError):
    """It failed again right after it was renewed: the process that holds it must not go on."""


def _shown(text: str, longest: int) -> str:
    """At most so long, and safe to print: outside text must not move a terminal's cursor or begin a new log line."""
    short = text[: longest + 1]
    if not short.isprintable():
        short = repr(short)[1:-1]
    return short if len(short) <= longest else short[: longest - 1] + "…"
