"""Checks cannot harm each other, neither by hanging nor by what they find."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from partage_cli.doctor.checks import run
from partage_cli.doctor.command import CHECKS
from partage_cli.doctor.findings import About, Finding, Severity, worst
from partage_cli.doctor.local_node import LocalNode, Unseen, names_in, text_of


@pytest.fixture
def nobody() -> Iterator[Path]:
    """A folder with a subfolder that is closed to us, since the test runs as nobody."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        closed = Path(folder, "closed")
        closed.mkdir()
        (closed / "file").touch()
        closed.chmod(0)
        own = os.geteuid()
        os.seteuid(own or 65534)
        yield Path(folder)
        os.seteuid(own)
        closed.chmod(0o700)


HERE = LocalNode(Path("/nowhere"), "n1")


def well(_: LocalNode) -> Iterator[Finding]:
    yield About("well").ok("it is")


def forbidden(error: Exception) -> Iterator[Finding]:
    raise error


@pytest.mark.slow
def test_a_check_that_hangs_costs_its_own_finding() -> None:
    release = threading.Event()

    def hanging(_: LocalNode) -> Iterator[Finding]:
        release.wait()
        yield About("hanging").ok("never")

    findings = run({"hanging": hanging, "well": well}, HERE, deadline_s=1.0)
    release.set()
    assert [(each.check, each.status) for each in findings] == [("hanging", Severity.UNKNOWN), ("well", Severity.OK)]


def test_what_the_system_refuses_is_a_finding_and_a_defect_is_not() -> None:
    def refused(_: LocalNode) -> Iterator[Finding]:
        yield from forbidden(PermissionError(13, "Permission denied", "/x"))

    def defect(_: LocalNode) -> Iterator[Finding]:
        yield from forbidden(ZeroDivisionError())

    assert [each.status for each in run({"refused": refused, "well": well}, HERE)] == [Severity.UNKNOWN, Severity.OK]
    with pytest.raises(ZeroDivisionError):
        run({"defect": defect, "well": well}, HERE)


def test_wrong_is_worse_than_a_warning_and_that_is_worse_than_not_to_know() -> None:
    about = About("x")
    ok, unknown, warning, wrong = about.ok(""), about.unknown(""), about.warning("", do="y"), about.wrong("", do="y")
    assert worst([]) is Severity.OK
    assert worst([ok, unknown]) is Severity.UNKNOWN
    assert worst([warning, unknown]) is Severity.WARNING
    assert worst([wrong, warning, ok]) is Severity.WRONG


def test_files_are_read_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (1 << 20))
    assert text_of(file) == "x" * (1 << 20)
    file.write_bytes(b"x" * ((1 << 20) + 1))
    assert isinstance(text_of(file), Unseen)
    assert isinstance(names_in(file), Unseen)


def test_what_is_closed_to_us_is_not_missing(nobody: Path) -> None:
    seen = text_of(nobody / "closed/file")
    assert (isinstance(seen, Unseen), str(seen)) == (True, f"{nobody}/closed/file: may not be read as this user")
    assert isinstance(seen, Unseen)
    assert not seen.is_missing
    assert isinstance(names_in(nobody / "closed"), Unseen)


def test_whoever_may_see_little_is_told_so_and_accuses_nobody(nobody: Path) -> None:
    closed = LocalNode(nobody / "closed", "n1")
    checks = {name: check for name, check in CHECKS.items() if name != "api"}  # depends on a user's kubeconfig
    findings = run(checks, closed)
    assert {each.status for each in findings} == {Severity.UNKNOWN}
    assert {each.check for each in findings} >= {"kubelet-endpoint", "crishim", "advertiser", "inventory", "keys"}
