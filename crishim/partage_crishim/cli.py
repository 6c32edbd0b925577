"""The command line of crishim: flags become settings, settings a service."""

from __future__ import annotations

import uvloop

from partage_base.daemon.cli import daemon_command
from partage_crishim.checking import mistakes
from partage_crishim.service import start
from partage_crishim.settings import CrishimSettings

main = daemon_command(
    "crishim",
    CrishimSettings,
    start=start,
    about="Stands between kubelet and the container runtime: starts a container with its allocation, or says why not.",
    check=mistakes,
    loop_factory=uvloop.new_event_loop,
    takes_over=True,
    lives_always=True,
)
