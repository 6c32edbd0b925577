"""No step can keep a daemon from exiting, and the exit message names the step."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from unit.daemon.processes import RunningDaemon, run_to_end, stopped, write_script

pytestmark = pytest.mark.slow  # each test starts processes

_SOON = ("--stop-deadline-s", "0.2")


@pytest.mark.parametrize(
    ("named", "steps", "at"),
    [
        ("run", {"run": "await forever()"}, "ready"),
        ("run", {"run": "await stubborn()"}, "ready"),
        ("stop", {"stop": "await forever()"}, "ready"),
        ("stop", {"stop": "await stubborn()"}, "ready"),
        ("start", {"start": "log.info('up'); await stubborn()"}, "up"),
        ("tasks", {"start": "self.daemon.tasks.start(stubborn(), name='deaf')"}, "ready"),
    ],
)
def test_what_outlives_the_deadline_ends_the_process_by_the_name_of_the_step(
    tmp_path: Path, named: str, steps: dict[str, str], at: str
) -> None:
    code, daemon = stopped(write_script(tmp_path, **steps), *_SOON, at=at)
    assert code == 1
    assert daemon.events[-1].startswith(f"step {named} was not done 0.2 s after the stop began")


@pytest.mark.parametrize("step", ["start", "run", "stop"])
def test_a_step_that_blocks_the_loop_is_ended_with_its_place_in_the_code(tmp_path: Path, step: str) -> None:
    """The watchdog is not Python code: a driver call that never returns can't block it."""
    code = "log.info('blocked'); time.sleep(3600)"
    code = f"await stopping.wait(); {code}" if step == "run" else code
    at = "blocked" if step == "start" else "ready"
    exit_code, daemon = stopped(write_script(tmp_path, **{step: code}), *_SOON, at=at)
    assert exit_code == 1
    assert any(f"in {step}\n" in line and "partage-crishim.py" in line for line in daemon.lines)


def test_a_thread_that_never_ends_does_not_hold_the_process(tmp_path: Path) -> None:
    start = "asyncio.get_running_loop().run_in_executor(None, time.sleep, 3600)"
    code, daemon = stopped(write_script(tmp_path, start=start), *_SOON)
    assert (code, "stopped" in daemon.events) == (1, True)


def test_a_stop_after_an_error_has_the_same_deadline(tmp_path: Path) -> None:
    done = run_to_end(write_script(tmp_path, start="raise CannotStart('no')", stop="await forever()"), *_SOON)
    assert done.returncode == 1
    assert "step stop was not done" in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("hang", ["await forever()", "time.sleep(3600)"])
def test_a_second_signal_ends_a_hanging_stop_at_once(
    tmp_path: Path, number: signal.Signals, code: int, hang: str
) -> None:
    with RunningDaemon(write_script(tmp_path, stop=f"log.info('hanging'); {hang}")) as daemon:
        daemon.until("ready")
        daemon.send(signal.SIGTERM)
        daemon.until("hanging")
        daemon.until_asleep()
        daemon.send(number)
        assert daemon.end() == code
