"""A daemon loads, starts, runs and stops, and reports how it ended."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from unit.daemon.processes import RunningDaemon, run_to_end, stopped, write_script

pytestmark = pytest.mark.slow  # each test starts processes


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_running_daemon_in_order(tmp_path: Path, number: signal.Signals) -> None:
    code, daemon = stopped(write_script(tmp_path), number=number)
    assert (code, daemon.events) == (0, ["starting", "ready", "stop requested", "given back", "stopped"])


def test_the_run_is_asked_and_finishes_what_it_does_before_the_stop(tmp_path: Path) -> None:
    """A request in progress when the daemon is stopped is still answered."""
    run = "await stopping.wait(); await asyncio.sleep(0.01); log.info('answered')"
    code, daemon = stopped(write_script(tmp_path, run=run))
    assert (code, daemon.events[-3:]) == (0, ["answered", "given back", "stopped"])


def test_a_signal_during_the_start_cancels_it_and_gives_back_what_it_took(tmp_path: Path) -> None:
    code, daemon = stopped(write_script(tmp_path, start="log.info('half way'); await forever()"), at="half way")
    assert (code, daemon.events) == (0, ["starting", "half way", "stop requested", "given back", "stopped"])


def test_a_daemon_that_ends_by_itself_is_not_cut_short_by_the_first_signal_that_comes_then(tmp_path: Path) -> None:
    """A signal from an operator during a handover that has already begun does not count as the second one."""
    start = "before = signal.getsignal(signal.SIGTERM); signal.signal(signal.SIGTERM, then(before))"
    run = "self.daemon.end('another has taken over'); await stopping.wait()"
    stop = "log.info('draining'); await go_on.wait()"
    also = """
import signal
go_on = asyncio.Event()
then = lambda before: lambda number, frame: (before(number, frame), go_on.set())
"""
    with RunningDaemon(write_script(tmp_path, start=start, run=run, stop=stop, also=also)) as daemon:
        daemon.until("draining")
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
        assert daemon.events[:4] == ["starting", "ready", "stopping by itself", "draining"]
        assert sorted(daemon.events[4:]) == ["given back", "stop requested", "stopped"]


@pytest.mark.parametrize(
    ("also", "said"),
    [
        ("", "SIGHUP is ignored: settings are read once; restart the daemon"),
        ("Service.reload = lambda self: log.info('read again')", "read again"),
    ],
)
def test_a_hangup_makes_a_service_reload_that_can(tmp_path: Path, also: str, said: str) -> None:
    with RunningDaemon(write_script(tmp_path, also=also)) as daemon:
        daemon.until("ready")
        daemon.send(signal.SIGHUP)
        daemon.until(said)
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0


START, RUN = "start", "run"


@pytest.mark.parametrize(
    ("steps", "code", "told"),
    [
        (
            {START: "raise CannotStart('cannot reach c.sock; is it running?')"},
            1,
            ["cannot reach c.sock; is it running?"],
        ),
        (
            {START: "from partage_plugins.errors import SignatureRefused; raise SignatureRefused('no key signs')"},
            1,
            ["no key signs"],
        ),
        ({START: "raise BadConfiguration('no keys in a', 'no keys in b')"}, 78, ["no keys in a", "no keys in b"]),
        (
            {RUN: "raise ExceptionGroup('g', [CannotStart('a'), ExceptionGroup('h', [BadConfiguration('b')])])"},
            1,
            ["a", "b"],
        ),
        ({RUN: "pass"}, 1, ["the run ended by itself before a stop was asked for; this is a defect, please report it"]),
    ],
)
def test_an_expected_error_is_a_line_and_still_stops_what_was_started(
    tmp_path: Path, steps: dict[str, str], code: int, told: list[str]
) -> None:
    done = run_to_end(write_script(tmp_path, **steps))
    events = [json.loads(line)["event"] for line in done.stderr.splitlines()]
    begun = ["starting"] if START in steps else ["starting", "ready"]
    assert (done.returncode, events) == (code, [*begun, *told, "given back", "stopped"])
    assert "traceback" not in done.stderr


@pytest.mark.parametrize(
    ("run", "ends"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        (
            "raise ExceptionGroup('g', [CannotStart('a'), OSError('b')])",
            "OSError: b\n    +------------------------------------",
        ),
    ],
)
def test_an_error_with_anything_unexpected_in_it_keeps_its_traceback(tmp_path: Path, run: str, ends: str) -> None:
    done = run_to_end(write_script(tmp_path, run=run))
    (line,) = [json.loads(line) for line in done.stderr.splitlines() if "traceback" in line]
    assert done.returncode == 1
    assert line["traceback"].rstrip().endswith(ends)
    assert json.loads(done.stderr.splitlines()[-2])["event"] == "given back"


def test_an_error_in_the_stop_fails_a_daemon_that_ran_well(tmp_path: Path) -> None:
    assert stopped(write_script(tmp_path, stop="raise OSError('cannot give back')"))[0] == 1


def test_the_first_error_makes_the_exit_code(tmp_path: Path) -> None:
    done = run_to_end(write_script(tmp_path, start="raise BadConfiguration('no')", stop="raise OSError('nor that')"))
    assert (done.returncode, "nor that" in done.stderr) == (78, True)


def test_an_error_while_the_service_is_made_is_told(tmp_path: Path) -> None:
    script = write_script(tmp_path)
    script.write_text(script.read_text().replace("self.settings, self.daemon =", "raise CannotStart('no way') #"))
    done = run_to_end(script)
    events = [json.loads(line)["event"] for line in done.stderr.splitlines()]
    assert (done.returncode, events[-2:]) == (1, ["no way", "stopped"])


@pytest.mark.parametrize(
    ("work", "told"),
    [
        ("failing()", "in task 'watch'"),
        ("brief()", "task 'watch' ended by itself"),
        ("asyncio.sleep(0)", "task 'watch'"),
    ],
)
@pytest.mark.parametrize("step", ["start", "run"])
def test_a_task_that_dies_ends_the_daemon(tmp_path: Path, work: str, told: str, step: str) -> None:
    """A daemon whose watch has died would look alive and do nothing."""
    spawn = f"self.daemon.tasks.start({work}, name='watch')"
    wait = "await forever()" if step == "start" else "await stopping.wait()"
    done = run_to_end(write_script(tmp_path, **{step: f"{spawn}; {wait}"}))
    assert done.returncode == 1
    assert told in done.stderr
    assert json.loads(done.stderr.splitlines()[-2])["event"] == "given back"


def test_tasks_live_until_the_stop_is_done_and_are_then_cancelled(tmp_path: Path) -> None:
    code, daemon = stopped(write_script(tmp_path, start="self.daemon.tasks.start(forever(), name='watch')"))
    assert (code, daemon.events[-2:]) == (0, ["given back", "stopped"])


def test_a_task_that_fails_while_the_daemon_stops_is_told_once(tmp_path: Path) -> None:
    stop = "self.daemon.tasks.start(failing(), name='late'); await asyncio.sleep(0.01)"
    code, daemon = stopped(write_script(tmp_path, stop=stop))
    assert (code, sum("the peer is gone" in line for line in daemon.lines)) == (1, 1)


@pytest.mark.parametrize("step", ["start", "run", "stop"])
def test_a_step_that_cancels_itself_does_not_confuse_the_life(tmp_path: Path, step: str) -> None:
    done = run_to_end(write_script(tmp_path, **{"run": "pass", step: "raise asyncio.CancelledError"}))
    assert done.returncode == 1


def test_another_loop_can_be_asked_for(tmp_path: Path) -> None:
    script = write_script(tmp_path, start="log.info('loop', kind=type(asyncio.get_running_loop()).__name__)")
    own = "class Own(asyncio.SelectorEventLoop): pass\ndaemon_command"
    text = script.read_text().replace(
        '    daemon_command("crishim"', "    " + own.replace("\n", "\n    ") + '("crishim"'
    )
    script.write_text(text.replace('tests.")', 'tests.", loop_factory=Own)'))
    with RunningDaemon(script) as daemon:
        assert daemon.until("loop")["kind"] == "Own"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_does_not_interrupt_the_sleeping_loop_wakes_it(tmp_path: Path, number: signal.Signals) -> None:
    """Another thread takes the signal here, to make the race certain; otherwise it arrives just before the sleep."""
    asleep = "threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()"
    start = f"{asleep}; signal.pthread_sigmask(signal.SIG_BLOCK, {{{int(number)}}})"
    with RunningDaemon(write_script(tmp_path, start=start, also="import signal, threading")) as daemon:
        daemon.until("ready")
        daemon.until_asleep()
        daemon.send(number)
        assert daemon.end() == 0
