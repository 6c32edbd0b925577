"""The command line of the controller of SharePods: flags become settings, settings a service."""

from __future__ import annotations

from partage_base.daemon.cli import daemon_command
from partage_scheduler.sharepods.service import start
from partage_scheduler.sharepods.settings import SharePodSettings

main = daemon_command(
    "sharepods",
    SharePodSettings,
    start=start,
    about="Makes a pod for each of KubeShare's SharePods, placed by partage-scheduler.",
)
