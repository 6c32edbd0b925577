"""Finds plugins by their entry points and instantiates them, one by one: an error in one does not affect the others."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from partage_plugins.api.names import PluginName
from partage_plugins.errors import PluginNotLoaded

if TYPE_CHECKING:  # importing it loads half of the email package, which processes without plugins do not need
    from importlib.metadata import EntryPoint

BLOCK_VARIABLE: Final = "PARTAGE_PLUGINS_BLOCK"
TRACE_VARIABLE: Final = "PARTAGE_PLUGINS_TRACE"
OURS: Final = "partage"


@dataclass(frozen=True)
class Candidate:
    """A plugin that may be loaded: its name, its origin, and a function that returns its class."""

    name: PluginName
    origin: str
    load: Callable[[], object]


def installed(group: str) -> list[Candidate]:
    """The plugins of installed distributions: ours first, then by name, so the order does not depend on the disk."""
    from importlib.metadata import entry_points  # noqa: PLC0415  see above

    found = sorted(entry_points(group=group), key=lambda entry: (_distribution(entry) != OURS, entry.name))
    return [Candidate(PluginName(entry.name), _origin(entry), entry.load) for entry in found]


def from_paths(paths: Mapping[str, str]) -> list[Candidate]:
    """Plugins as `module:Class` by name, for tests and demonstrations."""
    return [Candidate(PluginName(name), path, partial(_import, path)) for name, path in paths.items()]


def blocked_names(environment: Mapping[str, str]) -> frozenset[PluginName]:
    """The plugins that the operator blocks."""
    names = environment.get(BLOCK_VARIABLE, "").split(",")
    return frozenset(PluginName(name.strip()) for name in names if name.strip())


def tracing(environment: Mapping[str, str]) -> bool:
    """Whether the operator wants every call printed."""
    return environment.get(TRACE_VARIABLE, "") not in ("", "0")


def made(candidate: Candidate) -> object:
    """Instantiates the candidate's class."""
    try:
        plugin_class = candidate.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plugin may raise anything, and must neither end nor cancel this process
        raise PluginNotLoaded(candidate.name, "import", f"{candidate.origin}: {described(error)}") from error
    if not isinstance(plugin_class, type):
        why = f"{candidate.origin} is a {type(plugin_class).__name__}; allowed: a class without arguments"
        raise PluginNotLoaded(candidate.name, "import", why)
    try:
        return plugin_class()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # as above
        raise PluginNotLoaded(candidate.name, "make", f"{candidate.origin}: {described(error)}") from error


def described(error: BaseException) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _import(path: str) -> object:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else ""


def _origin(entry: EntryPoint) -> str:
    if entry.dist is None:
        return entry.value
    return f"{entry.dist.name} {entry.dist.version} ({entry.value})"
