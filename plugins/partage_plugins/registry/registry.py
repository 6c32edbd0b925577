"""Registers the plugins of one side: checks their hooks, finds the owners of kinds, reports what was not loaded.

pluggy does what it is good at (specifications, markers, argument checks, order); this module adds what it lacks: a
misspelt or unmarked hook is detected at start, and each error carries the plugin's name.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import msgspec
import pluggy
from pluggy import HookImpl

from partage_plugins.api.kinds import AnyKind, KindType
from partage_plugins.api.names import IN_WORDS, KIND_PATTERN, Kind, PluginName
from partage_plugins.errors import PluginNotLoaded
from partage_plugins.hooks.markers import PROJECT
from partage_plugins.registry.entry_points import Candidate, described, made

_PREFIX = "partage_"


@dataclass(frozen=True)
class LoadReport:
    """The result for each candidate."""

    loaded: tuple[tuple[PluginName, str], ...]
    """Name and origin, in calling order."""
    faults: tuple[PluginNotLoaded, ...]
    blocked: tuple[PluginName, ...]
    unknown_blocked: tuple[PluginName, ...]
    """Blocked names that are not installed, perhaps misspelt."""


class Registry:
    """The loaded plugins of one side."""

    def __init__(self, spec: ModuleType) -> None:
        self._spec = spec
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(spec)
        self._candidates: dict[PluginName, Candidate] = {}
        self._owners: dict[Kind, PluginName] = {}
        self._kinds: dict[Kind, AnyKind] = {}

    @property
    def names(self) -> tuple[PluginName, ...]:
        """The loaded plugins, in calling order."""
        return tuple(self._candidates)

    @property
    def kinds(self) -> tuple[AnyKind, ...]:
        """The kinds that have an owner here; pass them to decoders."""
        return tuple(self._kinds.values())

    @property
    def hooks(self) -> tuple[str, ...]:
        """All hooks of this side, by name."""
        return tuple(hook for hook in dir(self._spec) if hook.startswith(_PREFIX))

    def kind(self, name: Kind) -> AnyKind | None:
        """The kind of that name, or None if no plugin owns it."""
        return self._kinds.get(name)

    def owner(self, kind: Kind) -> PluginName | None:
        return self._owners.get(kind)

    def load(self, candidates: Iterable[Candidate], blocked: frozenset[PluginName] = frozenset()) -> LoadReport:
        """Registers the candidates one by one; a failure of one does not affect the others."""
        faults: list[PluginNotLoaded] = []
        seen: set[PluginName] = set()
        for candidate in candidates:
            seen.add(candidate.name)
            try:
                if candidate.name not in blocked:
                    self.add(candidate)
            except PluginNotLoaded as fault:
                faults.append(fault)
        return LoadReport(
            loaded=tuple((name, candidate.origin) for name, candidate in self._candidates.items()),
            faults=tuple(faults),
            blocked=tuple(sorted(seen & blocked)),
            unknown_blocked=tuple(sorted(blocked - seen)),
        )

    def add(self, candidate: Candidate) -> None:
        """Instantiates and registers one plugin."""
        if candidate.name in self._candidates:
            why = f"{candidate.origin} has the name of {self._candidates[candidate.name].origin}; block or remove one"
            raise PluginNotLoaded(candidate.name, "register", why)
        plugin = made(candidate)
        self._check_hooks(candidate.name, plugin)
        kind = self._kind_of(candidate.name, plugin)
        self._register(candidate.name, plugin)
        self._candidates[candidate.name] = candidate
        if kind is not None:
            self._kinds[kind.name], self._owners[kind.name] = kind, candidate.name

    def renew(self, name: PluginName) -> None:
        """Replaces a plugin with a new instance, whose state is empty."""
        plugin = made(self._candidates[name])
        self._manager.unregister(name=name)
        self._register(name, plugin)

    def implementations(self, hook: str) -> list[HookImpl]:
        """A hook's implementations in calling order, which is the order of loading."""
        order = self.names
        return sorted(getattr(self._manager.hook, hook).get_hookimpls(), key=lambda each: order.index(each.plugin_name))

    def arguments(self, hook: str) -> tuple[str, ...]:
        """The names of a hook's arguments, in the specification's order."""
        return tuple(getattr(self._manager.hook, hook).spec.argnames)

    def _register(self, name: PluginName, plugin: object) -> None:
        try:
            self._manager.register(plugin, name=name)
        except pluggy.PluginValidationError as error:
            raise PluginNotLoaded(name, "register", " ".join(str(error).split())) from None

    def _check_hooks(self, name: PluginName, plugin: object) -> None:
        hooks = [attribute for attribute in dir(plugin) if attribute.startswith(_PREFIX)]
        known = ", ".join(self.hooks)
        for hook in hooks:
            if hook not in self.hooks:
                raise PluginNotLoaded(name, hook, f"there is no such hook on this side; the hooks are {known}")
            options: Any = self._manager.parse_hookimpl_opts(plugin, hook)
            if options is None:
                raise PluginNotLoaded(name, hook, "is not marked with @hookimpl")
            if options["wrapper"] or options["hookwrapper"]:
                raise PluginNotLoaded(name, hook, "is a wrapper; plugins answer, they do not wrap others")
            if options["tryfirst"] or options["trylast"]:
                raise PluginNotLoaded(name, hook, "asks for a place in the order; nothing is decided by order")
        if not hooks:
            raise PluginNotLoaded(name, "register", f"has no hook; the hooks are {known}")

    def _kind_of(self, name: PluginName, plugin: object) -> AnyKind | None:
        hook = getattr(plugin, "partage_kind", None)
        if hook is None:
            return None
        try:
            kind = hook()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin may raise anything, and must neither end nor cancel this process
            raise PluginNotLoaded(name, "partage_kind", described(error)) from error
        if kind is None:
            return None
        checked = _checked_kind(name, kind)
        if checked.name in self._owners:
            why = f"kind {checked.name} is owned by {self._owners[checked.name]}; a kind has one owner"
            raise PluginNotLoaded(name, "partage_kind", why)
        return checked


def _checked_kind(name: PluginName, kind: object) -> AnyKind:
    if not isinstance(kind, KindType):
        raise PluginNotLoaded(name, "partage_kind", f"returned {type(kind).__name__}; allowed: a KindType or None")
    declared: AnyKind = kind
    if re.search(KIND_PATTERN, declared.name) is None:
        raise PluginNotLoaded(name, "partage_kind", f"named {declared.name!r}; allowed: {IN_WORDS[KIND_PATTERN]}")
    for what in (declared.request, declared.grant, declared.part):
        if not (inspect.isclass(what) and issubclass(what, msgspec.Struct)):
            why = f"kind {declared.name}: {what!r} is no msgspec.Struct; requests, grants and parts must be"
            raise PluginNotLoaded(name, "partage_kind", why)
    return declared
