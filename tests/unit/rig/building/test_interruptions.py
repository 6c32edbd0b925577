"""Builders are killed, interrupted and started twice; the next one goes on, and no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from support.fake_programs import Fake, Start, until

pytestmark = pytest.mark.slow  # each test starts builders


def processes_of(fake: Fake) -> list[str]:
    """Whatever lives and was told of the fake's folder, the test's own process aside."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
            if f"FAKE={fake.folder}".encode() in environment:
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # it ended meanwhile
            continue
    return found


def is_building(fake: Fake) -> bool:
    return (fake.folder / "environment").exists()


def finished(builder: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = builder.communicate(timeout=60)
    return builder.returncode, out, err


def test_a_killed_builder_leaves_no_process_and_the_next_one_builds(fake: Fake, start: Start) -> None:
    fake.tell("hang")
    builder = start("etcd")
    until(lambda: is_building(fake))
    builder.kill()
    builder.wait()
    until(lambda: not any("/go " in each for each in processes_of(fake)))
    assert not fake.entry.exists()
    fake.forget("hang")
    status, _, err = finished(start("etcd"))
    assert (status, fake.entry.exists()) == (0, True), err
    assert list((fake.cache.root / "work").iterdir()) == [], "the remains of the dead were not cleared away"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupted_builder_ends_what_it_started(
    fake: Fake, start: Start, number: signal.Signals, status: int
) -> None:
    fake.tell("hang")
    builder = start("etcd")
    until(lambda: is_building(fake))
    os.kill(builder.pid, number)
    ended, out, err = finished(builder)
    assert (ended, out, processes_of(fake)) == (status, "", [])
    assert err.splitlines()[-1] == "rig: interrupted; the next run goes on from here"
    assert "Traceback" not in err
    assert list((fake.cache.root / "work").iterdir()) == []


def test_of_two_builders_at_once_one_builds_and_the_other_says_for_whom_it_waits(fake: Fake, start: Start) -> None:
    fake.tell("hang")
    first = start("etcd", "--paths")
    until(lambda: is_building(fake))
    second = start("etcd", "--paths")
    line = second.stderr.readline() if second.stderr else ""
    assert f"process {first.pid} makes it; waiting" in line
    fake.forget("hang")
    (one, paths, _), (two, same_paths, _) = finished(first), finished(second)
    assert (one, two) == (0, 0)
    assert paths == same_paths == f"etcd\t{fake.entry / 'bin/etcd'}\n"
    assert len(fake.calls("build")) == 1


def test_a_waiting_builder_takes_over_from_one_that_dies(fake: Fake, start: Start) -> None:
    fake.tell("hang")
    first = start("etcd")
    until(lambda: is_building(fake))
    second = start("etcd")
    assert "waiting" in (second.stderr.readline() if second.stderr else "")
    fake.forget("hang")
    first.kill()
    status, _, err = finished(second)
    assert (status, fake.entry.exists()) == (0, True), err
