"""The conformance kit: the requirements on every plugin, as checks that its author runs with pytest.

Describe the plugin in a `Subject`, and subclass `Conformance` in a test file: pytest then shows one test for each
check. `examples` builds pods, inventories and containers; `fixtures` provides the real `SchedulerFramework` and plugin
host for an author's own tests.

    from partage_plugins.testing import Conformance, Subject, examples

    class TestFpga(Conformance):
        subject = Subject(
            name="fpga",
            kind="fpga",
            scheduler="my_fpga.scheduler:FpgaScheduler",
            pods=(examples.pod({"fpga.example.com/boards": "1"}),),
            inventories=(examples.inventory(fpga={"boards": ["fpga0", "fpga1"]}),),
        )

Every check runs in a process of its own with bounded time and memory: a plugin that hangs, crashes or leaks fails a
check, and the author's pytest continues.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from partage_plugins.testing.subject import Limits, Subject

if TYPE_CHECKING:
    from partage_plugins.testing.suite import Conformance

__all__ = ["Conformance", "Limits", "Subject"]


def __getattr__(name: str) -> object:
    """Import pytest's part of the kit only on access: partage itself does not need pytest."""
    if name != "Conformance":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("partage_plugins.testing.suite").Conformance
