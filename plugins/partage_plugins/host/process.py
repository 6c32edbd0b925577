"""The child process that runs node plugins; ending it never blocks, even if it cannot be killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from typing import Final

from partage_plugins.host import blackbox
from partage_plugins.process_group import ProcessGroup

_COMMAND: Final = (sys.executable, "-P", "-m", "partage_plugins.host.child")


class HostProcess:
    def __init__(self, *, memory_bytes: int) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        box = blackbox.create()
        try:
            process = subprocess.Popen(  # noqa: S603  our own module
                [*_COMMAND, str(theirs.fileno()), str(box), str(memory_bytes)],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), box),
                start_new_session=True,  # so that processes started by a plugin are killed with it
            )
            self._box = blackbox.BlackBox(box)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(box)
        self._group = ProcessGroup(process)
        self._ended: asyncio.Future[str] | None = None
        ours.setblocking(False)
        self.socket = ours

    @property
    def pid(self) -> int:
        return self._group.pid

    def running(self) -> tuple[str, str]:
        """The plugin and hook that run now or ran when the child died; empty if none did."""
        return self._box.read()

    def end(self, *, grace_s: float) -> asyncio.Future[str]:
        """Ends the child and the processes that its plugins started; the result describes how the child ended.

        A child that has closed its socket is dying already: the grace period lets it die of its own cause. Further
        calls return the same result, and cancelling the wait does not stop the end.
        """
        if self._ended is None:
            self._ended = self._end(grace_s)
        return asyncio.shield(self._ended)

    def _end(self, grace_s: float) -> asyncio.Future[str]:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[str] = loop.create_future()
        # A daemon thread for each child: a child that hangs in a driver may never be reaped, and must block nothing
        # else.
        threading.Thread(target=self._reap, args=(loop, ended), name="plugin-host-reaper", daemon=True).start()
        if grace_s:
            loop.call_later(grace_s, self._group.kill)
        else:
            self._group.kill()
        return ended

    def _reap(self, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[str]) -> None:
        self._group.has_exited(waits=True)
        self._group.kill()  # processes that its plugins started may still run
        how = self._group.reap() or "does not end"
        self._box.close()
        with contextlib.suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(ended.set_result, how)
