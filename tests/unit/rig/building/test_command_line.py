"""The builder as people type it: what it prints where, and how it ends."""

from __future__ import annotations

import subprocess

import pytest

from support.fake_programs import Fake, Start

pytestmark = pytest.mark.slow  # each test starts builders


def finished(builder: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = builder.communicate(timeout=60)
    return builder.returncode, out, err


def test_a_build_without_terminal_writes_lines_to_stderr_alone(fake: Fake, start: Start) -> None:
    status, out, err = finished(start("etcd"))
    assert (status, out) == (0, "")
    assert [line.split(",")[0] for line in err.splitlines()] == [
        "etcd 3.6.6 (1 of 1): building",
        "etcd 3.6.6 (1 of 1): done",
        "rig: etcd: there",
    ]
    assert fake.entry.exists()


def test_a_failure_is_told_without_a_traceback(fake: Fake, start: Start) -> None:
    fake.tell("fail", "write: no space left on device")
    status, out, err = finished(start("etcd"))
    assert (status, out) == (1, "")
    assert "rig: cannot make etcd 3.6.6 (1 of 1): `go build` ended with status 1; the disk is full" in err
    assert "Traceback" not in err


def test_a_name_that_does_not_exist_is_a_status_of_its_own(fake: Fake, start: Start) -> None:
    status, out, err = finished(start("etcd", "kubelett"))
    assert (status, out) == (2, "")
    assert err.startswith("rig: the rig has nothing named kubelett; there is: default, nvidia, all, ")
    assert fake.calls("build") == []


def test_the_list_shows_what_is_there_and_makes_nothing(fake: Fake, start: Start) -> None:
    _, before, _ = finished(start("--list", "etcd"))
    assert before.split() == ["etcd", "3.6.6", "missing"]
    finished(start("etcd"))
    _, after, _ = finished(start("--list", "etcd"))
    assert f"{fake.entry}/bin: etcd" in after
    assert len(fake.calls("build")) == 1
