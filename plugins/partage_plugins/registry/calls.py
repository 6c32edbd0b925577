"""Binds hooks to plain functions, so that every error and all time spent is attributed to a plugin.

pluggy's own call collects results without their plugins and stops at the first exception; both sides need the plugin of
each. A bound call takes the specification's arguments by position and adds a fraction of a microsecond to the bare
function.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Final

from pluggy import HookImpl

from partage_plugins.api.names import PluginName
from partage_plugins.errors import DecodeError, PluginFailed, Refused
from partage_plugins.registry.entry_points import described
from partage_plugins.registry.registry import Registry

_PASSED_ON: Final = (Refused, DecodeError, KeyboardInterrupt)  # a plugin's refusals, and the user's interrupt
_LONGEST_TRACE: Final = 300


class Activity:
    """The running call: written at every call, read by the watchdog."""

    __slots__ = ("current", "serial")

    def __init__(self) -> None:
        self.current: Call | None = None
        self.serial = 0

    def enter(self, call: Call) -> None:
        self.serial += 1
        self.current = call

    def leave(self) -> None:
        self.current = None


class Call:
    """One plugin's implementation of one hook."""

    __slots__ = ("_activity", "_function", "hook", "plugin")

    def __init__(self, plugin: PluginName, hook: str, function: Callable[..., Any], activity: Activity) -> None:
        self.plugin, self.hook = plugin, hook
        self._function, self._activity = function, activity

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401  the façade knows the types
        """The unchecked result; exceptions other than refusals and interrupts become `PluginFailed`."""
        self._activity.enter(self)
        try:
            return self._function(*arguments)
        except _PASSED_ON:
            raise
        except BaseException as error:  # a plugin may raise anything, and must neither end nor cancel this process
            raise PluginFailed(self.plugin, self.hook, f"raised {type(error).__name__}", str(error)) from error
        finally:
            self._activity.leave()

    def going_on(self, function: Callable[..., Any]) -> Call:
        """Wraps a function that this call returned, so that its errors and time are attributed to this plugin."""
        return Call(self.plugin, self.hook, function, self._activity)


def bound(registry: Registry, hook: str, activity: Activity, *, traced: bool) -> tuple[Call, ...]:
    """The calls of one hook, in calling order."""
    names = registry.arguments(hook)
    calls: list[Call] = []
    for implementation in registry.implementations(hook):
        plugin = PluginName(implementation.plugin_name)
        function = _by_position(implementation, names)
        calls.append(Call(plugin, hook, _traced(plugin, hook, function) if traced else function, activity))
    return tuple(calls)


def _by_position(implementation: HookImpl, names: tuple[str, ...]) -> Callable[..., Any]:
    """The function itself, or a wrapper that picks its arguments if it takes fewer or in another order."""
    taken = implementation.argnames
    if tuple(taken) == names:
        return implementation.function
    places = [names.index(name) for name in taken]

    def picking(*arguments: Any) -> Any:  # noqa: ANN401  as given
        return implementation.function(*(arguments[place] for place in places))

    return picking


def _traced(plugin: PluginName, hook: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def tracing(*arguments: Any) -> Any:  # noqa: ANN401  as given
        started = time.perf_counter()
        outcome = "nothing"
        try:
            result = function(*arguments)
            outcome = f"-> {_short(result)}"
        except BaseException as error:
            outcome = f"raised {described(error)}"
            raise
        finally:
            spent_us = (time.perf_counter() - started) * 1e6
            said = f"partage plugins: {plugin}: {hook}{_short(arguments)} {outcome} ({spent_us:.0f} us)"
            print(said, file=sys.stderr, flush=True)  # noqa: T201  the operator asked to see it
        return result

    return tracing


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  tracing must not change what happens
        text = f"<unprintable: {described(error)}>"
    return text if len(text) <= _LONGEST_TRACE else text[:_LONGEST_TRACE] + "…"
