"""Loads the plugins of the scheduler and the advertiser, which must not run without one of them.

A fault is bad configuration: the daemon ends, with a line for each plugin that could not be loaded. crishim does not
use this: it keeps running and refuses the containers of a kind that has no plugin.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

import structlog

from partage_base.daemon.errors import BadConfiguration
from partage_plugins.api.names import PluginName
from partage_plugins.registry.entry_points import Candidate
from partage_plugins.registry.registry import Registry

_log = structlog.get_logger()


def load_all(hooks: ModuleType, candidates: Iterable[Candidate], *, blocked: frozenset[PluginName]) -> Registry:
    """Loads every candidate that is not blocked; raises `BadConfiguration` with all faults."""
    registry = Registry(hooks)
    report = registry.load(candidates, blocked)
    for name, origin in report.loaded:
        _log.info("plugin loaded", plugin=name, origin=origin)
    for name in report.blocked:
        _log.warning("plugin blocked", plugin=name)
    for name in report.unknown_blocked:
        _log.warning("a blocked plugin is not installed; is its name right?", plugin=name)
    if report.faults:
        raise BadConfiguration(*(f"{fault}; mend it, remove it, or block it" for fault in report.faults))
    return registry
