"""The conformance kit: the requirements on every plugin, as checks that its author runs with pytest.

Describe the plugin in a `Subject` of a test file: pytest then shows one test for each check. `examples` builds pods,
inventories and containers; the fixtures `scheduler_side` and `plugin_host` provide the real `SchedulerFramework` and
plugin host for an author's own tests.

    from partage_plugins.testing import Subject, examples

    test_fpga = Subject(
        name="fpga",
        kind="fpga",
        scheduler="my_fpga.scheduler:FpgaScheduler",
        pods=(examples.pod({"fpga.example.com/boards": "1"}),),
        inventories=(examples.inventory(fpga={"boards": ["fpga0", "fpga1"]}),),
    )

`Conformance` is the same as a class to subclass. Every check runs in a process of its own with bounded time and memory:
a plugin that hangs, crashes or leaks fails a check, and the author's pytest continues.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from partage_plugins.testing.subject import Limits, Subject
    from partage_plugins.testing.suite import Conformance

__all__ = ["Conformance", "Limits", "Subject"]

_MODULES: Final = {"Conformance": "suite", "Limits": "subject", "Subject": "subject"}


def __getattr__(name: str) -> object:
    """Import on access: pytest loads `pytest_plugin` in runs that have no plugin, and partage needs no pytest."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
