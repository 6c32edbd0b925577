"""Whether a daemon lives and whether it is ready, as values.

A condition has a name and, where it does not hold, a reason; only those that don't hold are kept. *Ready* is what
others wait for before they rely on the daemon (a peer is reached, a cache is filled). *Dead* is what only a new start
mends (a call into the driver that never returned): liveness probes and the watchdog of systemd end a daemon that is
dead, so never say it of a peer's fault.
"""

from __future__ import annotations

from collections.abc import Mapping


class Health:
    """The named conditions of one daemon."""

    def __init__(self) -> None:
        self._unready: dict[str, str] = {}
        self._dead: dict[str, str] = {}

    def ready(self, name: str) -> None:
        """Condition `name` holds."""
        self._unready.pop(name, None)

    def unready(self, name: str, why: str) -> None:
        """Condition `name` does not hold; others should wait."""
        self._unready[name] = why

    def alive(self, name: str) -> None:
        """Part `name` goes on."""
        self._dead.pop(name, None)

    def dead(self, name: str, why: str) -> None:
        """Part `name` can't go on; the process should be started anew."""
        self._dead[name] = why

    @property
    def against_ready(self) -> Mapping[str, str]:
        """Why the daemon is not ready, by condition; empty where it is."""
        return {**self._dead, **self._unready}

    @property
    def against_alive(self) -> Mapping[str, str]:
        """Why the daemon should be started anew, by condition; empty where it should not."""
        return dict(self._dead)
