"""The command line of the SharePod controller: flags become settings, settings a service."""

from __future__ import annotations

from partage_base.daemon import logs
from partage_base.daemon.cli import CHECK_SETTINGS, Instead, daemon_command
from partage_scheduler.core import decider_over, plugins
from partage_scheduler.sharepods.service import start
from partage_scheduler.sharepods.settings import SharePodSettings


def _checked(_settings: SharePodSettings, _modes: frozenset[str]) -> int:
    logs.configure("sharepods", level="warning", log_format="text")
    decider_over(plugins())
    return 0


main = daemon_command(
    "sharepods",
    SharePodSettings,
    start=start,
    about="Makes a pod for each of KubeShare's SharePods, placed by partage-scheduler.",
    instead=Instead[SharePodSettings](flags=CHECK_SETTINGS, words=(), do=_checked),
)
