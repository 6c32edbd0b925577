"""A daemon that requires all of its plugins exits if one fails, and reports which and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.plugins import load_all
from partage_plugins.api import PluginName
from partage_plugins.hooks import scheduler as scheduler_hooks
from partage_plugins.registry.entry_points import from_paths
from unit.daemon.processes import run_to_end, write_script

NATIVE = {"native": "partage_dialects.native:NativeDialect"}
LOAD = """
        from partage_base.daemon.plugins import load_all
        from partage_plugins.hooks import scheduler
        from partage_plugins.registry.entry_points import from_paths
        load_all(scheduler, from_paths({paths}), blocked=frozenset({{"absent"}}))
"""


def test_what_can_be_loaded_is_and_what_is_blocked_is_not() -> None:
    registry = load_all(
        scheduler_hooks, from_paths(NATIVE | {"bad": "no.such:Thing"}), blocked=frozenset({PluginName("bad")})
    )
    assert registry.names == ("native",)


def test_every_fault_is_a_mistake_of_the_configuration_with_what_to_do() -> None:
    with pytest.raises(BadConfiguration) as refused:
        load_all(scheduler_hooks, from_paths({"a": "no.such:Thing", "b": "json:nothing"}), blocked=frozenset())
    first, second = refused.value.mistakes
    assert first.startswith("plugin a: import: no.such:Thing: ModuleNotFoundError")
    assert second.startswith("plugin b: import: json:nothing: AttributeError")
    assert first.endswith("; mend it, remove it, or block it")


@pytest.mark.slow
def test_a_daemon_with_a_plugin_missing_exits_with_78_and_names_it(tmp_path: Path) -> None:
    paths = NATIVE | {"bad": "no.such:Thing"}
    done = run_to_end(write_script(tmp_path, start=LOAD.format(paths=paths).strip()))
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.returncode == 78
    said = [event["event"] for event in events]
    assert "plugin loaded" in said
    assert "a blocked plugin is not installed; is its name right?" in said
    assert any(event.startswith("plugin bad: import:") for event in said)
