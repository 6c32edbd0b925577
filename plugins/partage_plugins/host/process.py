"""Starts and ends the child process, and says how it died; never blocks, not even on a child that cannot be killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Final

from partage_plugins.host import blackbox

_COMMAND: Final = (sys.executable, "-P", "-m", "partage_plugins.host.child")


class ChildProcess:
    """One child, from its start to its end."""

    def __init__(self, *, memory_bytes: int) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        box = blackbox.create()
        try:
            self._process = subprocess.Popen(  # noqa: S603  our own module
                [*_COMMAND, str(theirs.fileno()), str(box), str(memory_bytes)],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), box),
                start_new_session=True,  # so that what a plugin starts ends with it
            )
            self._box = blackbox.BlackBox(box)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(box)
        self._reaping = threading.Lock()
        self._ended: asyncio.Future[str] | None = None
        ours.setblocking(False)
        self.socket = ours

    @property
    def pid(self) -> int:
        return self._process.pid

    def running(self) -> tuple[str, str]:
        """Plugin and hook that run now, or ran when it died; empty where none did."""
        return self._box.read()

    def end(self, *, grace_s: float) -> asyncio.Future[str]:
        """Ends the child and what its plugins started; the result says how the child ended.

        A child that has closed its socket is dying already: the grace lets it die of its own cause. Whoever asks again,
        or stops waiting, changes nothing.
        """
        if self._ended is None:
            self._ended = self._end(grace_s)
        return asyncio.shield(self._ended)

    def _end(self, grace_s: float) -> asyncio.Future[str]:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[str] = loop.create_future()
        # A daemon thread of its own: a child that hangs in a driver may never be reaped, and must hold up nobody.
        threading.Thread(target=self._reap, args=(loop, ended), name="plugin-host-reaper", daemon=True).start()
        if grace_s:
            loop.call_later(grace_s, self._kill)
        else:
            self._kill()
        return ended

    def _reap(self, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[str]) -> None:
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        self._kill()  # what its plugins started may live on
        with self._reaping:
            code = self._process.wait()
        self._box.close()
        how = f"exited with {code}" if code >= 0 else f"was killed by {_signal_name(-code)}"
        with contextlib.suppress(RuntimeError):  # the loop may be gone by now
            loop.call_soon_threadsafe(ended.set_result, how)

    def _kill(self) -> None:
        """Kills the whole group, unless the child is reaped: its number may be another's by then."""
        with self._reaping, contextlib.suppress(ProcessLookupError):
            if self._process.returncode is None:
                os.killpg(self._process.pid, signal.SIGKILL)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
