"""The conformance kit: what every plugin must do, as checks that its author runs with pytest.

Say what to check in a `Subject`, and subclass `conformance.Conformance` in a test file: pytest then shows one test for
each check. `examples` builds pods, inventories and containers; `fixtures` gives the real façade and the real plugin
host to an author's own tests.

    from partage_plugins.testing import Subject, examples
    from partage_plugins.testing.conformance import Conformance

    class TestFpga(Conformance):
        subject = Subject(
            name="fpga",
            kind="fpga",
            scheduler="my_fpga.scheduler:FpgaScheduler",
            pods=(examples.pod({"fpga.example.com/boards": "1"}),),
            inventories=(examples.inventory(fpga={"boards": ["fpga0", "fpga1"]}),),
        )

Every check runs in a child process with bounded time and memory: a plugin that hangs, crashes or leaks fails a check
and never costs the author's pytest. `run` gives the same as data.
"""

from partage_plugins.testing.report import Report, Result
from partage_plugins.testing.running import run
from partage_plugins.testing.subject import Limits, Subject

__all__ = ["Limits", "Report", "Result", "Subject", "run"]
