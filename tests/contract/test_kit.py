"""The conformance kit's interface to pytest and to authors."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest
from msgspec.structs import replace

from partage_plugins.testing import Conformance, Subject
from partage_plugins.testing.examples import inventory, pod
from partage_plugins.testing.suite import checks_of

SCHEDULER, NODE = "partage_fpga_template.scheduler:FpgaScheduler", "partage_fpga_template.node:FpgaNode"
PODS, INVENTORIES = (pod({"fpga.example.com/boards": "1"}),), (inventory(fpga={"boards": ["fpga0"]}),)
WHOLE = Subject(name="fpga", kind="fpga", scheduler=SCHEDULER, node=NODE, pods=PODS, inventories=INVENTORIES)
NO_PYTEST = "import sys; sys.modules['pytest'] = None; import partage_plugins.testing as it; it.Subject; it.Conformance"


class WrongFpga(Conformance):
    """Not collected, since its name does not begin with `Test`."""

    subject = replace(WHOLE, scheduler="contract.wrong.loading:RaisesWhenMade", node=None)


def test_a_failing_check_shows_reason_promise_and_trace() -> None:
    with pytest.raises(pytest.fail.Exception) as failure:
        WrongFpga().test_conformance("loads")
    said = str(failure.value)
    assert "plugin fpga: make: contract.wrong.loading:RaisesWhenMade: OSError: no such device" in said
    assert "promised: It is imported, made and registered without a fault" in said
    assert 'raise OSError("no such device")' in said


def test_every_check_promises_one_sentence() -> None:
    for name, check in checks_of(WHOLE).items():
        assert check.promise.endswith("."), name
        assert "\n" not in check.promise, name


def test_a_check_that_does_not_apply_is_not_there() -> None:
    scheduler_only = Subject(name="fpga", kind="fpga", scheduler=SCHEDULER, pods=PODS, inventories=INVENTORIES)
    node_only = Subject(name="fpga", kind="fpga", node=NODE)
    preference = Subject(name="fpga", scheduler=SCHEDULER, pods=PODS, inventories=INVENTORIES)
    assert not set(checks_of(scheduler_only)) & set(checks_of(node_only))
    assert set(checks_of(preference)) < set(checks_of(scheduler_only)) < set(checks_of(WHOLE))
    assert "works_in_the_plugin_host" not in checks_of(node_only)  # nothing is granted


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "needs a scheduler side or a node side"),
        ({"scheduler": SCHEDULER}, "needs pods, and inventories"),
        ({"node": NODE, "grants": {"fpga": "[]"}}, "needs the inventory"),
        ({"node": NODE, "files": {"../etc/passwd": ""}}, "must be a path below the node's root"),
        ({"node": NODE, "files": {"/etc/passwd": ""}}, "must be a path below the node's root"),
    ],
)
def test_a_subject_that_makes_no_sense_is_refused(fields: dict[str, object], why: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=why):
        msgspec.convert({"name": "fpga", **fields}, Subject)


@pytest.mark.slow
def test_without_pytest_only_what_needs_it_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_PYTEST],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.strip().endswith("needs pytest: pip install pytest")
