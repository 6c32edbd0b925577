"""The types of the pytest plugin's fixtures, for annotations; and the fixtures, which older tests import by name."""

from __future__ import annotations

from partage_plugins.testing.frameworks import PluginHosts, SchedulerSides
from partage_plugins.testing.pytest_plugin import plugin_host, scheduler_side

__all__ = ["PluginHosts", "SchedulerSides", "plugin_host", "scheduler_side"]
