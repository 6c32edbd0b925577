"""A plugin that hangs far beyond its deadline ends the process, which names plugin and hook."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from partage_plugins.api import PluginName
from partage_plugins.registry.calls import Activity, Call
from partage_plugins.registry.watchdog import Watchdog
from rig.patience import patience_s

pytestmark = pytest.mark.slow  # each test starts processes

PROGRAM = """
import sys, time
from partage_plugins import hookimpl
from partage_plugins.registry.watchdog import Watchdog
from support.sides import request, scheduler_side, slots

class Stuck:
    @hookimpl
    def partage_fits(self, request, slots):
        {body}

side = scheduler_side(fine=type("Fine", (), {{"partage_shape": hookimpl(lambda self, request: 1)}}), stuck=Stuck)
Watchdog(side.activity, deadline_s=1.0).start()
for _ in range(3):
    side.shape(request())
    time.sleep(0.5)
print("was not ended for being slow without hanging", flush=True)
side.fits(request(), slots(0))
"""


def ended(body: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body=body)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=patience_s(),
        check=False,
    )


def test_a_hang_ends_the_process_naming_plugin_and_hook_and_where() -> None:
    it = ended("time.sleep(600)")
    assert it.returncode == 1
    assert "was not ended" in it.stdout
    assert "partage: plugin stuck hangs in partage_fits; ending the process" in it.stderr
    assert "in partage_fits" in it.stderr, "the stack says where"


def test_native_code_that_holds_the_interpreter_is_ended_too() -> None:
    it = ended("import re; re.match('(a+)+b', 'a' * 64)")
    assert it.returncode == -signal.SIGALRM
    assert "in partage_fits" in it.stderr


def test_many_quick_calls_are_no_hang_and_stopping_disarms() -> None:
    activity = Activity()
    call = Call(PluginName("quick"), "partage_fits", lambda: None, activity)
    hung: list[Call] = []
    dog = Watchdog(activity, deadline_s=1.0, end=hung.append)
    dog.start()
    end_s = time.monotonic() + 1.5
    while time.monotonic() < end_s:
        call()
    dog.stop()
    assert hung == []
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("raises", [False, True])
def test_activity_is_cleared_whatever_a_plugin_does(raises: bool) -> None:  # noqa: FBT001  a table's column
    activity = Activity()

    def body() -> None:
        assert activity.current is call
        if raises:
            raise KeyboardInterrupt

    call = Call(PluginName("p"), "partage_take", body, activity)
    try:
        call()
    except KeyboardInterrupt:
        assert raises
    assert activity.current is None
    assert activity.serial == 1
