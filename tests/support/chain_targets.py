"""Metrics addresses of a chain's daemons, with the labels that a PodMonitor would add."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from support import crishim
from support.advertiser_stage import PORT as ADVERTISER_PORT
from support.chain_stage import Chain
from support.isolation_stage import BROKER_PORT

PORTS: Final = {"advertiser": ADVERTISER_PORT, "broker": BROKER_PORT, "crishim": crishim.PORT}


def scheduler_address(chain: Chain) -> str:
    """The metrics address of the running scheduler, which chose a free port."""
    found: list[str] = re.findall(r"metrics are served.*?(127\.0\.0\.1:\d+)", chain.scheduler.said)
    return found[-1]


def targets(chain: Chain) -> Mapping[str, Mapping[str, str]]:
    """Labels by address."""
    found = {scheduler_address(chain): {"node": "control"}}
    for name, node in chain.rig.nodes.items():
        found |= {f"{node.machine.addresses.ip}:{port}": {"node": name} for port in PORTS.values()}
    return found
