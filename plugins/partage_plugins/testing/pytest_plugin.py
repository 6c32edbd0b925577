"""The kit as a pytest plugin: each `test_… = Subject(…)` of a test module is tested, and authors' tests have fixtures.

pytest loads this module wherever partage is installed. It imports the rest of the kit only for tests that use it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from partage_plugins.testing.frameworks import PluginHosts, SchedulerSides


def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> pytest.Class | None:
    """Collects a subject whose name is that of a test, with a test for each check that applies."""
    subject = sys.modules.get("partage_plugins.testing.subject")  # whoever has a subject has imported it
    if subject is None or not collector.funcnamefilter(name) or not isinstance(obj, subject.Subject):
        return None
    from partage_plugins.testing.suite import Conformance  # noqa: PLC0415  see above

    tests = pytest.Class.from_parent(collector, name=name)
    tests.obj = type(name, (Conformance,), {"subject": obj})
    return tests


@pytest.fixture
def scheduler_side() -> SchedulerSides:
    """Creates a `SchedulerFramework`: `scheduler_side({"fpga": "my.scheduler:Fpga"}, examples.inventory(…))`."""
    from partage_plugins.testing.frameworks import scheduler_framework  # noqa: PLC0415  see above

    return scheduler_framework


@pytest.fixture
def plugin_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PluginHosts]:
    """Creates running plugin hosts, and stops them after the test: `plugin_host({"fpga": "my.node:Fpga"})`."""
    from partage_plugins.testing.node_stage import host_with, python_path  # noqa: PLC0415  see above

    monkeypatch.setenv("PYTHONPATH", python_path())
    with ExitStack() as stack:
        yield lambda plugins: stack.enter_context(host_with(plugins, tmp_path))
