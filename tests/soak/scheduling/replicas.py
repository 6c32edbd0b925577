"""Two schedulers that compete for the lead: killed, frozen and thawed, and restarted whenever they end."""

from __future__ import annotations

from pathlib import Path

from support.scheduler_process import SchedulerProcess


class Replica(SchedulerProcess):
    def __init__(self, name: str, kubeconfig: Path, root: Path, *, lease_s: float) -> None:
        """A leader itself gives up after two thirds of the Lease."""
        terms = {"--lease-s": lease_s, "--renew-s": lease_s * 2 / 3, "--retry-s": lease_s / 8}
        words = (word for flag, value in terms.items() for word in (flag, str(value)))
        super().__init__(kubeconfig, root, *words, name=name)
        self.name, self.starts = name, 0

    def start(self, *flags: str) -> None:
        super().start(*flags)
        self.starts += 1

    def leads_as(self, identity: str) -> bool:
        return bool(identity) and identity in self.said
