"""The command line of the scheduler: flags become settings, settings a service."""

from __future__ import annotations

import uvloop

from partage_base.daemon.cli import daemon_command
from partage_scheduler.checking import mistakes
from partage_scheduler.once import INSTEAD
from partage_scheduler.service import start
from partage_scheduler.settings import SchedulerSettings

main = daemon_command(
    "scheduler",
    SchedulerSettings,
    start=start,
    about="Places pods on nodes and their containers on shares of cards.",
    check=mistakes,
    loop_factory=uvloop.new_event_loop,
    instead=INSTEAD,
)
