"""Health conditions of a daemon: alive and ready.

A condition has a name and, while it does not hold, a reason; only those that don't hold are kept. *Ready* is what
others wait for before they rely on the daemon (a peer is reached, a cache is filled). *Dead* is what only a restart
fixes (a call into the driver that never returned): liveness probes and systemd's watchdog restart a dead daemon, so
never set it for a peer's fault.

`Systemd` sends notifications if systemd asks for them (Type=notify, WatchdogSec): one datagram a message, see
sd_notify(3).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Final


class Health:
    """The named conditions of one daemon."""

    def __init__(self) -> None:
        self._unready: dict[str, str] = {}
        self._dead: dict[str, str] = {}

    def ready(self, name: str) -> None:
        self._unready.pop(name, None)

    def unready(self, name: str, why: str) -> None:
        """Condition `name` does not hold; others should wait."""
        self._unready[name] = why

    def alive(self, name: str) -> None:
        self._dead.pop(name, None)

    def dead(self, name: str, why: str) -> None:
        """Part `name` can't go on; the process should be restarted."""
        self._dead[name] = why

    @property
    def against_ready(self) -> Mapping[str, str]:
        """Why the daemon is not ready, by condition; empty where it is."""
        return {**self._dead, **self._unready}

    @property
    def against_alive(self) -> Mapping[str, str]:
        """Why the daemon should be restarted, by condition; empty where it should not."""
        return dict(self._dead)


_PATIENCE_S: Final = 0.2  # the socket's queue is long; if it is full, systemd itself hangs


class Systemd:
    """The supervisor named by the environment; sends nothing if none is named."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        self.watchdog_s = _watchdog_s(environment)

    def notify(self, *lines: str) -> bool:
        """Sends lines such as ``READY=1``; returns whether they were sent."""
        if not self._address:
            return False
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        message = "\n".join(line.replace("\n", " ") for line in lines).encode(errors="replace")
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.settimeout(_PATIENCE_S)
                sender.sendto(message, address)
        except (OSError, ValueError):  # gone, full, or no address
            return False
        return True


def _watchdog_s(environment: Mapping[str, str]) -> float | None:
    """Half of systemd's watchdog timeout; None if systemd does not watch this process."""
    microseconds, watched = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if watched not in {"", str(os.getpid())} or not microseconds.isascii() or not microseconds.isdigit():
        return None
    return int(microseconds) / 2_000_000 or None
