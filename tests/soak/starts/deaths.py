"""Services that are killed, which ones and when, as a seed says."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rig.client.wait import until

SERVICES: Final = ("manager", "crishim", "broker", "containerd", "inventory")
MORE: Final = 3
LONGEST_PAUSE_S: Final = 1.5


@dataclass(frozen=True)
class Death:
    service: str
    after_s: float
    """Since the one before it."""


def deaths(seed: int) -> list[Death]:
    """Every service's, in any order, and some more."""
    chance = random.Random(seed)  # noqa: S311  chooses what happens
    services = [*chance.sample(SERVICES, len(SERVICES)), *chance.choices(SERVICES, k=MORE)]
    return [Death(service, chance.uniform(0, LONGEST_PAUSE_S)) for service in services]


def kill(planned: Sequence[Death], pid_of: Callable[[str], int]) -> None:
    """One after the other; one that is not there at its time is waited for."""
    for death in planned:
        time.sleep(death.after_s)
        until(f"{death.service} is there", lambda death=death: None if pid_of(death.service) else "it is not")  # type: ignore[misc]
        os.kill(pid_of(death.service), signal.SIGKILL)
