"""The conformance kit's interface to pytest and to authors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from partage_plugins.testing import Conformance, Subject
from partage_plugins.testing.examples import inventory, pod
from partage_plugins.testing.suite import checks_of

SCHEDULER, NODE = "partage_fpga_template.scheduler:FpgaScheduler", "partage_fpga_template.node:FpgaNode"
PODS, INVENTORIES = (pod({"fpga.example.com/boards": "1"}),), (inventory(fpga={"boards": ["fpga0"]}),)
WHOLE = Subject(name="fpga", kind="fpga", scheduler=SCHEDULER, node=NODE, pods=PODS, inventories=INVENTORIES)
AUTHORS_FILE = """
from partage_plugins.testing import Subject

test_fpga = Subject(name="fpga", kind="fpga", node="partage_fpga_template.node:FpgaNode")
OTHER = Subject(name="other", node="partage_fpga_template.node:FpgaNode")
"""
IMPORTED = """
import pytest, sys

pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[1]])
print(sorted(name for name in sys.modules if name.startswith("partage") or name in ("msgspec", "numpy")))
"""
NO_PYTEST = "import sys; sys.modules['pytest'] = None; import partage_plugins.testing as it; it.Subject; it.Conformance"


class WrongFpga(Conformance):
    """Not collected, since its name does not begin with `Test`."""

    subject = replace(WHOLE, scheduler="contract.wrong.loading:RaisesWhenMade", node=None)


def python(*arguments: str) -> str:
    """What a Python prints that finds all that this one finds."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_subject_that_is_named_as_a_test_has_a_test_for_each_check_that_applies(tmp_path: Path) -> None:
    file = tmp_path / "test_fpga.py"
    file.write_text(AUTHORS_FILE)
    said = python("-m", "pytest", "-q", "--collect-only", f"--rootdir={tmp_path}", str(file))
    found = [line for line in said.splitlines() if "::" in line]
    checks = checks_of(Subject(name="fpga", kind="fpga", node=NODE))
    assert found == [f"test_fpga.py::test_fpga::test_conformance[{name}]" for name in checks]


@pytest.mark.slow
def test_pytest_imports_nothing_of_the_kit_for_tests_that_do_not_use_it(tmp_path: Path) -> None:
    file = tmp_path / "test_other.py"
    file.write_text("def test_other() -> None:\n    pass\n")
    said = python("-c", IMPORTED, str(file))
    assert "1 passed" in said
    assert said.splitlines()[-1] == str(
        [
            "partage_plugins",
            "partage_plugins.errors",
            "partage_plugins.testing",
            "partage_plugins.testing.pytest_plugin",
        ]
    )


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
    assert python("-c", NO_PYTEST).strip().endswith("needs pytest: pip install pytest")
