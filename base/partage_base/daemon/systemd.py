"""Tells systemd how the daemon is, where systemd asks for it (Type=notify, WatchdogSec).

One datagram a message, see sd_notify(3). Nothing here raises into the daemon: whoever supervises may be gone.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Final

_PATIENCE_S: Final = 0.2  # the socket's queue is long; where it is full, systemd itself hangs


class Systemd:
    """The supervisor, as the environment names it; silent where it names none."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        self.watchdog_s = _watchdog_s(environment)

    def notify(self, *lines: str) -> bool:
        """Sends lines such as ``READY=1``; whether they were taken."""
        if not self._address:
            return False
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        message = "\n".join(line.replace("\n", " ") for line in lines).encode(errors="replace")
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.settimeout(_PATIENCE_S)
                sender.sendto(message, address)
        except (OSError, ValueError):  # gone, full, or no address at all
            return False
        return True


def _watchdog_s(environment: Mapping[str, str]) -> float | None:
    """Half of the time after which systemd misses us; None where it does not watch this process."""
    microseconds, watched = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if watched not in {"", str(os.getpid())} or not microseconds.isascii() or not microseconds.isdigit():
        return None
    return int(microseconds) / 2_000_000 or None
