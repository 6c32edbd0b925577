"""All errors that partage expects from its inputs, its users and its plugins, as one tree.

    PartageError
    ├── DecodeError         external data violates its contract: which path, which value, what is allowed
    ├── SignatureRefused    an allocation's signature is missing, made by an unknown key, or wrong
    ├── Refused             a request is refused, in one sentence that the user can act on
    │   └── DialectConflict     one pod requests one kind in two dialects
    └── PluginError         a plugin violated its contract; names the plugin and the hook
        ├── PluginNotLoaded     it could not be imported, instantiated or registered
        ├── PluginFailed        it raised
        ├── PluginNonsense      it returned a value that its hook may not return
        ├── AdjustmentConflict  two plugins set one field to different values
        ├── PluginHung          it did not return in time and its process was killed
        ├── PluginCrashed       its process died
        └── PluginBroken        it failed again right after a reset: the process must not go on

The base class determines what a caller does: reject the input, refuse the pod, distrust the plugin. Messages state what
failed, on what, and what to do. Any other exception is a bug in partage and keeps its traceback.
"""

from __future__ import annotations

_LONGEST_PATH = 160
_LONGEST_VALUE = 120
_LONGEST_ALLOWED = 240


class PartageError(Exception):
    """Base of all expected errors."""


class DecodeError(PartageError):
    """External data violates its contract."""

    def __init__(self, what: str, *, path: str, value: str, allowed: str) -> None:
        """`what` is being decoded (`allocation`), `path` is the place in it, `allowed` describes its valid values."""
        self.what = what
        self.path = _shown(path, _LONGEST_PATH)
        self.value = _shown(value, _LONGEST_VALUE)
        self.allowed = _shown(allowed, _LONGEST_ALLOWED)
        super().__init__(what, self.path, self.value, self.allowed)

    def __str__(self) -> str:
        return f"{self.what}: {self.path} is {self.value}; allowed: {self.allowed}"


class SignatureRefused(PartageError):
    """An allocation's signature is missing or invalid."""


class Refused(PartageError):
    """A refusal with its reason: one stable sentence for the user. Plugins raise it to refuse a pod or a container."""


class DialectConflict(Refused):
    """One pod requests one kind in two dialects."""


class PluginError(PartageError):
    """A plugin violated its contract."""

    def __init__(self, plugin: str, hook: str, why: str, detail: str = "") -> None:
        """`detail` may contain users' values and belongs only in logs; `why` may be shown to everyone."""
        super().__init__(plugin, hook, why, detail)
        self.plugin, self.hook, self.why, self.detail = plugin, hook, why, detail

    def __str__(self) -> str:
        return ": ".join(filter(None, (f"plugin {self.plugin}", self.hook, self.why, self.detail)))


class PluginNotLoaded(PluginError):
    """It could not be imported, instantiated or registered; `hook` is the step that failed."""


class PluginFailed(PluginError):
    """It raised; that exception is this one's cause."""


class PluginNonsense(PluginError):
    """It returned a value that its hook may not return."""


class AdjustmentConflict(PluginError):
    """Two plugins set one field of a container to different values; `plugin` names both."""


class PluginHung(PluginError):
    """It did not return in time, and its process was killed."""


class PluginCrashed(PluginError):
    """The process that runs the plugin died during a call."""


class PluginBroken(PluginError):
    """It failed again right after it was instantiated again: the process that holds it must not go on."""


def _shown(text: str, longest: int) -> str:
    """Shortens and escapes external text, which must not move a terminal's cursor or begin a new log line."""
    short = text[: longest + 1]
    if not short.isprintable():
        short = repr(short)[1:-1]
    return short if len(short) <= longest else short[: longest - 1] + "…"
