"""The command line of the advertiser: flags become settings, settings a service."""

from __future__ import annotations

from partage_advertiser.commands import INSTEAD
from partage_advertiser.service import start
from partage_advertiser.settings import AdvertiserSettings
from partage_base.daemon.cli import daemon_command

main = daemon_command(
    "advertiser",
    AdvertiserSettings,
    start=start,
    about="Tells the cluster which devices this node has and how they are; prune takes back all that it wrote.",
    instead=INSTEAD,
)
