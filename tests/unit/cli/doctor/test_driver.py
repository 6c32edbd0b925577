"""Problems with the driver, judged by its missing or mismatched parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_cli.doctor.driver import driver
from partage_cli.doctor.findings import Finding, Severity
from partage_cli.doctor.local_node import LocalNode
from unit.cli.doctor.made import NVRM, VERSION, Made


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def found(made: Made) -> dict[str, Finding]:
    return {finding.check: finding for finding in driver(made.node)}


def test_a_driver_that_is_whole_is_well(made: Made) -> None:
    findings = found(made.with_driver())
    assert {each.status for each in findings.values()} == {Severity.OK}
    assert findings["driver"].found == f"kernel module {VERSION} drives 2 cards"


def test_the_open_kernel_module_says_its_version_elsewhere_in_the_line(made: Made) -> None:
    made.with_driver().write("proc/driver/nvidia/version", NVRM.format("Open Kernel Module for x86_64", VERSION))
    assert found(made)["driver-libraries"].status is Severity.OK


def test_a_module_that_is_not_loaded_is_wrong_where_there_are_cards_and_a_warning_where_not(made: Made) -> None:
    assert [(each.check, each.status) for each in driver(made.node)] == [("driver", Severity.WARNING)]
    made.write("sys/bus/pci/devices/0000:18:00.0/vendor", "0x10de\n")
    made.write("sys/bus/pci/devices/0000:18:00.0/class", "0x030200\n")
    made.write("sys/bus/pci/devices/0000:19:00.0/vendor", "0x8086\n")
    made.write("sys/bus/pci/devices/0000:19:00.0/class", "0x030000\n")
    made.write("sys/bus/pci/devices/0000:18:00.1/vendor", "0x10de\n")
    made.write("sys/bus/pci/devices/0000:18:00.1/class", "0x040300\n")  # its audio function
    finding = found(made)["driver"]
    assert finding.status is Severity.WRONG
    assert finding.found.startswith("1 card on the PCI bus")


def test_libraries_of_another_version_are_an_update_without_a_restart(made: Made) -> None:
    finding = found(made.with_driver(libraries="570.1.2"))["driver-libraries"]
    assert finding.status is Severity.WRONG
    assert (
        finding.found
        == f"the kernel module is {VERSION} and the libraries are libcuda 570.1.2 and libnvidia-ml 570.1.2"
    )


def test_two_versions_side_by_side_are_fine_while_one_fits(made: Made) -> None:
    made.with_driver().write("usr/lib64/libcuda.so.570.1.2")
    assert found(made)["driver-libraries"].status is Severity.OK


def test_libraries_that_are_nowhere_are_named(made: Made) -> None:
    made.with_driver()
    (made.root / f"usr/lib64/libcuda.so.{VERSION}").unlink()
    finding = found(made)["driver-libraries"]
    assert (finding.status, finding.found) == (Severity.WRONG, f"libcuda not found below {made.root}")


def test_device_nodes_that_are_missing_or_are_none_are_named(made: Made) -> None:
    made.with_driver(cards=3)
    (made.root / "dev/nvidia-uvm").unlink()
    (made.root / "dev/nvidia1").unlink()
    made.write("dev/nvidia1", "no device")
    assert found(made)["driver-devices"].found == "no device node nvidia-uvm, nvidia1"


def test_a_driver_in_a_container_is_found_below_its_root(made: Made) -> None:
    Made(made.root / "run/nvidia/driver").with_driver()
    node = LocalNode(made.root, "n1", driver_root=Path("/run/nvidia/driver"))
    assert [each.status for each in driver(node)] == [Severity.OK] * 3
    made.write("run/nvidia/driver/usr/lib64/libnvidia-ml.so.1")
    assert [each.status for each in driver(made.node)] == [Severity.OK] * 3, "also where people do not say it"


@pytest.mark.parametrize("text", ["", "NVRM", "Kernel Module", "Kernel Module  x  y"])
def test_a_version_that_says_nothing_is_no_mismatch(made: Made, text: str) -> None:
    made.with_driver().write("proc/driver/nvidia/version", text)
    assert found(made)["driver-libraries"].status is Severity.OK
