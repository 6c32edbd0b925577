"""One JSON line per event from every logger; no log line, reader or value can end a daemon."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.daemon.logs import LineWriter, json_line, text_line
from unit.daemon.processes import GUARD_S, RunningDaemon, clean_environment, write_script

pytestmark = pytest.mark.slow  # each test starts processes


def _logged(code: str, *, level: str = "info", log_format: str = "json") -> str:
    """The log of a process that configures logging and runs `code`."""
    head = "import asyncio, logging, warnings, structlog\nfrom partage_base.daemon import logs\n"
    configure = f"logs.configure('crishim', level={level!r}, log_format={log_format!r})\nlog = structlog.get_logger()\n"
    return subprocess.run(
        [sys.executable, "-c", head + configure + code],
        env=clean_environment({"PYTHONWARNINGS": "default"}),
        check=True,
        capture_output=True,
        text=True,
        timeout=GUARD_S,
    ).stderr


def _one(code: str) -> dict[str, Any]:
    return dict(json.loads(_logged(code)))


def test_a_line_begins_with_time_level_event_and_daemon() -> None:
    line = _one("log.warning('refused', pod='a', count=2)")
    assert list(line) == ["ts", "level", "event", "daemon", "pod", "count"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line.pop("ts"))
    assert line == {"level": "warning", "event": "refused", "daemon": "crishim", "pod": "a", "count": 2}


def test_what_is_bound_to_a_task_is_on_each_of_its_lines_and_on_no_other() -> None:
    code = """
async def one(pod):
    structlog.contextvars.bind_contextvars(pod=pod)
    await asyncio.sleep(0)
    log.info("seen", expected=pod)
async def all():
    await asyncio.gather(one("a"), one("b"))
asyncio.run(all())
log.info("after")
"""
    *seen, after = map(json.loads, _logged(code).splitlines())
    assert [(line["pod"], line["expected"]) for line in seen] == [("a", "a"), ("b", "b")]
    assert "pod" not in after


@pytest.mark.parametrize("call", ["log.exception('failed')", "log.error('failed', exc_info=error)"])
def test_an_exception_is_one_line_with_its_traceback(call: str) -> None:
    line = _one(f"try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    {call}")
    assert line["level"] == "error"
    assert line["traceback"].startswith("Traceback (most recent call last):")


def test_libraries_log_through_the_same_lines() -> None:
    line = _one("logging.getLogger('urllib3.pool').warning('retry %d', 3)")
    line.pop("ts")
    assert line == {
        "level": "warning", "event": "retry 3", "daemon": "crishim", "logger": "urllib3.pool",
    }  # fmt: skip


def test_a_library_s_line_has_what_is_bound_to_the_task() -> None:
    code = "structlog.contextvars.bind_contextvars(pod='a'); logging.getLogger('x').warning('seen')"
    assert _one(code)["pod"] == "a"


def test_a_library_s_exception_has_its_traceback_too() -> None:
    line = _one("try:\n    1 / 0\nexcept ZeroDivisionError:\n    logging.getLogger('asyncio').exception('lost')")
    assert line["traceback"].rstrip().endswith("ZeroDivisionError: division by zero")


def test_a_library_that_logs_wrongly_is_still_logged() -> None:
    assert _one("logging.getLogger('x').warning('%d of %d', 'one')")["event"] == "%d of %d"


def test_warnings_are_lines() -> None:
    assert "old" in _one("warnings.warn('old')")["event"]


@pytest.mark.parametrize(("level", "seen"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_less_than_the_level_is_not_logged(level: str, seen: int) -> None:
    code = "for name in ('debug', 'info', 'warning', 'error'): getattr(log, name)(name)"
    lines = _logged(code + "\n" + code.replace("log,", "logging,"), level=level).splitlines()
    assert len(lines) == 2 * seen


def test_text_is_for_eyes() -> None:
    line = _logged("log.info('ready', pod='a', count=2)", log_format="text")
    assert line.split(" ", 1)[1] == "info    ready pod=a count=2\n"


def test_text_can_not_be_made_to_look_like_another_line() -> None:
    line = _logged("log.info('refused', pod='a b', path='/x\\n2026 info', empty='')", log_format="text")
    assert line.endswith(r"""refused pod='a b' path='/x\n2026 info' empty=''""" + "\n")


def test_text_shows_a_traceback_on_lines_of_its_own() -> None:
    text = _logged("try:\n    1 / 0\nexcept ZeroDivisionError:\n    log.exception('failed')", log_format="text")
    assert text.splitlines()[1] == "Traceback (most recent call last):"


class _Odd:
    def __repr__(self) -> str:
        raise RuntimeError("no repr for you")


_RING: list[object] = []
_RING.append(_RING)
_VALUES = (
    st.text(st.characters()) | st.floats() | st.binary() | st.sampled_from([_Odd(), _RING, {1: 2}, {(1,): 2}, 10**400])
)


@given(st.dictionaries(st.text(st.characters()), _VALUES))
def test_whatever_is_logged_becomes_one_line_of_json(event: Mapping[str, object]) -> None:
    line = json_line(event)
    assert b"\n" not in line
    assert set(json.loads(line)) == {json.loads(json.dumps(key)) for key in event}


@given(st.dictionaries(st.text(st.characters()), _VALUES))
def test_whatever_is_logged_becomes_text(event: Mapping[str, object]) -> None:
    assert text_line({"ts": "t", "level": "info", "event": "e", **event})


def _stops_well(daemon: RunningDaemon) -> None:
    daemon.send(signal.SIGTERM)
    assert daemon.wait() == 0


_BUSY = "\n        while not stopping.is_set(): log.info('x' * 5000); await asyncio.sleep(0)"


def test_a_log_that_nobody_reads_any_more_ends_nothing(tmp_path: Path) -> None:
    with RunningDaemon(write_script(tmp_path, run=_BUSY)) as daemon:
        daemon.until("ready")
        daemon.close_stderr()
        _stops_well(daemon)


def test_a_log_that_nobody_empties_holds_nothing(tmp_path: Path) -> None:
    """The pipe is full long before the daemon reports in another way that it still works."""
    beat = tmp_path / "beat"
    much = "\n        for _ in range(1000): log.info('x' * 5000)\n        "
    run = f"{much}Path({str(beat)!r}).mkdir(); await stopping.wait()"
    with RunningDaemon(write_script(tmp_path, run=run)) as daemon:
        daemon.until("ready")
        while not beat.exists():
            assert daemon.lives
        _stops_well(daemon)


@pytest.mark.parametrize("closed", ["2>&-", "0<&- 1>&- 2>&-", "2>/dev/full"])
def test_a_closed_or_full_stderr_ends_nothing(tmp_path: Path, closed: str) -> None:
    beat = tmp_path / "beat"
    script = write_script(tmp_path, start=f"Path({str(beat)!r}).mkdir()")
    command = f'exec "{sys.executable}" "{script}" --root "{tmp_path}" --metrics-address 127.0.0.1:0 {closed}'
    with subprocess.Popen(["/bin/sh", "-c", command], env=clean_environment({})) as process:
        while not beat.exists():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(GUARD_S) == 0


def test_bad_configuration_with_a_closed_stderr_still_exits_with_78(tmp_path: Path) -> None:
    command = f'exec "{sys.executable}" "{write_script(tmp_path)}" --tries 0 2>&-'
    done = subprocess.run(["/bin/sh", "-c", command], env=clean_environment({}), check=False, timeout=GUARD_S)
    assert done.returncode == 78


def test_no_socket_gets_the_number_of_a_closed_stderr(tmp_path: Path) -> None:
    """A log line written into a connection to containerd would be a request."""
    script = write_script(tmp_path, start=f"Path({str(tmp_path / 'two')!r}).symlink_to(os.readlink('/proc/self/fd/2'))")
    command = f'exec "{sys.executable}" "{script}" --root "{tmp_path}" --metrics-address 127.0.0.1:0 2>&-'
    with subprocess.Popen(["/bin/sh", "-c", command], env=clean_environment({})) as process:
        while not (tmp_path / "two").is_symlink():
            assert process.poll() is None
        process.terminate()
    assert (tmp_path / "two").readlink() == Path(os.devnull)


def test_lost_lines_are_counted_and_the_next_line_stands_alone() -> None:
    reading, writing = os.pipe()
    writer = LineWriter(writing)
    while writer.write(b"x" * 10_000):  # larger than a piece, so that the last write is partial
        pass
    assert not writer.write(b"y" * 10_000)
    assert writer.lost == 2
    os.set_blocking(reading, False)
    before = b"".join(iter(lambda: _read(reading), b""))
    assert writer.write(b"next")
    after = before + _read(reading)
    assert after.splitlines()[-1] == b"next"
    os.close(reading)
    os.close(writing)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 20)
    except BlockingIOError:
        return b""


def test_the_next_line_says_how_many_were_lost() -> None:
    """A process fills its own stderr, empties it and logs again."""
    code = """
import os, sys
reading, writing = os.pipe()
kept = os.dup(2)
os.dup2(writing, 2)
for _ in range(100): log.info("x" * 2000)
os.dup2(kept, 2)
log.info("again")
log.info("and again")
"""
    again, and_again = map(json.loads, _logged(code).splitlines()[-2:])
    assert again["lost"] > 0
    assert "lost" not in and_again
