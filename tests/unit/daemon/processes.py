"""Real daemons for tests: a script with one service, run by the tests' own interpreter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

import partage_base
from rig.client.wait import found
from rig.patience import MOST, PATIENCE_S

GUARD_S: Final = MOST * PATIENCE_S  # no test waits this long; ends a daemon that hangs although it must not

_SCRIPT: Final = """
import asyncio, logging, os, sys, time
from pathlib import Path
from typing import Annotated, Literal
from msgspec import Meta
from partage_base.daemon.cli import daemon_command
from partage_base.daemon.errors import BadConfiguration, CannotStart
from partage_base.daemon.settings import CommonSettings, Setting
import structlog

log = structlog.get_logger()

class Sample(CommonSettings, frozen=True, kw_only=True):
    listen: Annotated[Path, Setting("Where it listens.")] = Path("/run/partage/crishim.sock")
    tries: Annotated[int, Meta(ge=1, le=5), Setting("How often it tries.")] = 3
    guard: Annotated[bool, Setting("Whether it guards.")] = True
    trusted: Annotated[tuple[str, ...], Setting("Namespaces that it trusts.")] = ("kube-system",)
    enforce: Annotated[Literal["strict", "advisory"], Setting("How it enforces.")] = "strict"

async def forever():
    await asyncio.Event().wait()

async def stubborn():
    while True:
        try:
            await forever()
        except asyncio.CancelledError:
            pass

async def failing():
    raise ConnectionError("the peer is gone")

async def brief():
    pass

class Service:
    def __init__(self, settings, daemon):
        self.settings, self.daemon = settings, daemon

    async def start(self):
        {start}

    async def run(self, stopping):
        {run}

    async def stop(self):
        {stop}
        log.info("given back")

async def start(settings, daemon):
    service = Service(settings, daemon)
    daemon.stack.push_async_callback(service.stop)
    await service.start()
    return service

{also}

def check(settings):
    return ["five tries are too many"] if settings.tries == 5 else []

if __name__ == "__main__":
    daemon_command("crishim", Sample, start=start, check=check, about="A daemon for tests.")()
"""


def write_script(
    folder: Path, *, start: str = "pass", run: str = "await stopping.wait()", stop: str = "pass", also: str = ""
) -> Path:
    """Writes a daemon with these lines as its three steps; `also` follows the service in the script."""
    path = folder / "partage-crishim.py"
    path.write_text(_SCRIPT.format(start=start, run=run, stop=stop, also=also))
    return path


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """This environment without the variables that configure daemons, and with `extra`."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PARTAGE_", "NOTIFY_", "WATCHDOG_"))
    }
    floor = Path(partage_base.__file__).parent.parent
    return {**kept, "PYTHONPATH": str(floor), "PYTHONWARNINGS": "error", **extra}


def run_to_end(script: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Output and exit code of a daemon that ends by itself."""
    return subprocess.run(
        [sys.executable, script, "--root", script.parent, *arguments],
        env=clean_environment(environment),
        check=False,
        capture_output=True,
        text=True,
        timeout=GUARD_S,
    )


class RunningDaemon:
    """A started daemon; a context manager that leaves no process behind."""

    def __init__(self, script: Path, *arguments: str, **environment: str) -> None:
        self._command: list[str | Path] = [sys.executable, script, "--root", script.parent, *arguments]
        self._environment = clean_environment(environment)
        self.lines: list[str] = []

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, env=self._environment, stderr=subprocess.PIPE, text=True)
        self._guard = threading.Timer(GUARD_S, self._process.kill)
        self._guard.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._guard.cancel()
        self._process.kill()
        self._process.wait(GUARD_S)
        self.close_stderr()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> int:
        """The exit code; does not read its output."""
        return self._process.wait(GUARD_S)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def until(self, event: str) -> dict[str, Any]:
        """The first line from here on that logs `event`."""
        assert self._process.stderr
        for line in self._process.stderr:
            self.lines.append(line)
            if line.startswith("{") and (found := json.loads(line))["event"] == event:
                return dict(found)
        raise AssertionError(f"{event!r} was never said:\n" + "".join(self.lines))

    def until_asleep(self) -> None:
        """Waits until its main thread has slept for a while: a signal just before a sleep would not interrupt it."""

        def is_asleep() -> bool:
            asleep = self._sleep()
            return asleep is not None and self._sleep(after_s=0.05) == asleep

        found("its main thread sleeps", is_asleep)

    def _sleep(self, *, after_s: float = 0) -> str | None:
        """Identifies the current sleep of its main thread by the number of context switches; None if it is awake."""
        time.sleep(after_s)
        lines = dict(
            line.split(":\t", 1) for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        )
        return lines["voluntary_ctxt_switches"] if lines["State"].startswith("S") else None

    def end(self) -> int:
        """Reads the rest of its log and returns its exit code, which is negative if a signal ended it."""
        assert self._process.stderr
        self.lines += self._process.stderr.readlines()
        return self.wait()

    def close_stderr(self) -> None:
        """Closes the reading end of its log."""
        assert self._process.stderr
        self._process.stderr.close()

    @property
    def events(self) -> list[str]:
        """The names of the events that it logged."""
        return [json.loads(line)["event"] for line in self.lines if line.startswith("{")]


def stopped(
    script: Path, *arguments: str, at: str = "ready", number: signal.Signals = signal.SIGTERM, **environment: str
) -> tuple[int, RunningDaemon]:
    """The exit code and log of a daemon that was sent a signal when it had logged `at`."""
    with RunningDaemon(script, *arguments, **environment) as daemon:
        daemon.until(at)
        daemon.send(number)
        return daemon.end(), daemon
