"""Runs one step of a build: logs its output, reports the elapsed time, and ends it with its builder.

The status is a plain line every 30 s: it shows that work continues, and keeps a CI log readable.

A step has its own process group. A terminal's Ctrl-C therefore reaches only the builder, which kills the group; if the
builder itself is killed, the kernel's parent-death signal ends the step. Half-finished results of the step are in a
folder that no builder reads.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rig.errors import BuildFailed


class Lines:
    """Prints every line, but a status only after a period of silence."""

    def __init__(self, say: Callable[[str], None], every_s: float = 30.0) -> None:
        self._say = say
        self._every_s = every_s
        self._last = time.monotonic()

    def line(self, text: str) -> None:
        self._say(text)
        self._last = time.monotonic()

    def status(self, text: str) -> None:
        if time.monotonic() - self._last >= self._every_s:
            self.line(text)


def to_stderr(text: str) -> None:
    """The default destination of lines."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def spent(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


_LOOK_EVERY_S: Final = 0.25
_TAIL_LINES: Final = 25
_TAIL_COLUMNS: Final = 300
_ADVICE: Final = (
    (
        r"no space left on device|disk quota exceeded",
        "the disk is full: all takes 7 GB, and PARTAGE_RIG_CACHE moves it",
    ),
    (
        r"dial tcp|no such host|i/o timeout|Temporary failure|proxyconnect|connection refused|TLS handshake|x509",
        "is there a network? a mirror or proxy is taken from the settings of go, apt and pip, as always",
    ),
    (r"checksum mismatch|SECURITY ERROR", "what came is not what was published; check GOPROXY in `go env`"),
    (r"Unable to locate package|has no installation candidate", "apt does not know it: are its sources complete?"),
    (r"signal: killed|out of memory|cannot allocate", "memory ran out: linking kubelet takes 2 GB"),
)
_ANYWAY: Final = "try again: it goes on where it stopped"


@dataclass(frozen=True)
class Task:
    title: str
    log: Path
    teller: Lines
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def failed(self, what: str) -> BuildFailed:
        """An error with the end of the log and advice."""
        tail = self._tail()
        lines = [f"cannot make {self.title}: {what}; {advice(tail)}", f"--- {self.log}, its end:", tail]
        return BuildFailed("\n".join(lines))

    def _tail(self) -> str:
        text = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([line[:_TAIL_COLUMNS] for line in text[-_TAIL_LINES:]] or ["(nothing was written)"])


@dataclass(frozen=True)
class Step:
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    is_bound: bool = True
    """Killed with the builder. Not for apt: killing dpkg leaves the machine in need of repair."""


def run(task: Task, step: Step) -> None:
    """Run the step to its end; raises `BuildFailed` unless it succeeds."""
    with task.log.open("ab") as log:
        log.write(f"[{task.seconds:.0f} s] $ {shlex.join(step.argv)}\n".encode())
        log.flush()
        process = _start(step, log.fileno())
    try:
        while process.poll() is None:
            task.teller.status(f"{task.title}: {spent(task.seconds)} so far ({_verb(step)})")
            _wait_a_little(process)
    finally:
        _end(process, step)
    if process.returncode != 0:
        raise task.failed(f"`{_verb(step)}` ended with status {process.returncode}")


def advice(tail: str) -> str:
    """Advice after a failure with this log tail."""
    return next((what for pattern, what in _ADVICE if re.search(pattern, tail, re.IGNORECASE)), _ANYWAY)


def _start(step: Step, log: int) -> subprocess.Popen[bytes]:
    setpriv = shutil.which("setpriv")
    bound = (setpriv, "--pdeathsig", "KILL", "--") if setpriv and step.is_bound else ()
    return subprocess.Popen(
        [*bound, *step.argv],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=dict(step.env),
        cwd=step.cwd,
        process_group=0,
    )


def _wait_a_little(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_LOOK_EVERY_S)
    except subprocess.TimeoutExpired:
        return


def _end(process: subprocess.Popen[bytes], step: Step) -> None:
    """End the whole group: go's compilers are its children."""
    if process.poll() is None:
        if step.is_bound:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.send_signal(signal.SIGINT)
        process.wait()


def _verb(step: Step) -> str:
    return " ".join([Path(step.argv[0]).name, *step.argv[1:2]])
