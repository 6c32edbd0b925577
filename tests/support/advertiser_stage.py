"""A node with simulated cards whose advertiser runs, as tests and demonstrations use it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from partage_advertiser.inventory_file import NAME
from partage_advertiser.publishing import ANNOTATION
from partage_plugins.codecs import decode_inventory
from partage_plugins.vocabulary import GPU, Card
from partage_plugins.vocabulary.inventory import Inventory
from rig.identity.people import ADVERTISER, OUR_NAMESPACE
from rig.identity.proofs import Bearer, Identity
from rig.machine.components import Component
from rig.nodes.machine import Machine
from rig.nodes.node import Daemon, Node
from rig.rig import Rig
from rig.talking.resources import LEASES, Json
from rig.talking.waiting import until
from support.simgpu_stage import DRIVER, tell

INVENTORY: Final = f"/{NAME}"
PORT: Final = 9500
QUIET_S: Final = 3
"""So short a watch over a card that came back that a test can wait for its end."""


def kubeconfig(rig: Rig, node: str) -> Path:
    """With a token that says which node it is for, as a pod of the DaemonSet has one."""
    token = rig.cluster.token(ADVERTISER, rig.cluster.nodes.get(node))
    return rig.control.identities.kubeconfig(Identity(ADVERTISER.user, Bearer(token)), rig.control.server)


def advertiser(access: Path, node: str, *flags: str, env: Mapping[str, str] | None = None, port: int = PORT) -> Daemon:
    """The daemon; ready when it says so."""
    address = f"127.0.0.1:{port}"
    argv = ("--node-name", node, "--kubeconfig", str(access), "--log-format", "text", "--metrics-address", address)
    environment = {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PARTAGE_DRIVER_ROOT": DRIVER,
        "PARTAGE_GPU_QUIET_S": str(QUIET_S),
        **(env or {}),
    }

    def why_not_ready(machine: Machine) -> str | None:
        return None if "200" in machine.run("sh", "-c", _ASK.format(sys.executable, address)) else "it is not ready"

    return Daemon(
        "advertiser", (sys.executable, "-P", "-m", "partage_advertiser", *argv, *flags), why_not_ready, environment
    )


_ASK: Final = (
    "{0} -I -c 'import urllib.request; print(urllib.request.urlopen(\"http://{1}/readyz\").status)' 2>&1 || true"
)


@dataclass(frozen=True)
class AdvertiserStage:
    """One node of a rig, its cards, and what is told of them."""

    rig: Rig
    name: str

    @property
    def node(self) -> Node:
        """As the rig has it."""
        return self.rig.nodes[self.name]

    @property
    def machine(self) -> Machine:
        """What it runs on."""
        return self.node.machine

    def start(self, *flags: str, env: Mapping[str, str] | None = None) -> Component:
        """An advertiser of this node."""
        component = self.node.daemon(advertiser(kubeconfig(self.rig, self.name), self.name, *flags, env=env))
        component.start()
        component.wait_ready()
        return component

    def tell_driver(self, command: str) -> str:
        """What a person would type to break the simulated cards."""
        return tell(self.machine, command)

    def told(self) -> Inventory | None:
        """What the cluster knows of the node."""
        text = self.rig.cluster.nodes.annotations(self.name).get(ANNOTATION)
        return decode_inventory(text, (GPU,)) if text else None

    def cards(self) -> tuple[Card, ...]:
        """As the cluster knows them."""
        told = self.told()
        part = told.part(GPU) if told else None
        return part.cards if part else ()

    def written(self) -> Inventory | None:
        """What crishim would read."""
        path = self.machine.path(INVENTORY)
        return decode_inventory(path.read_bytes(), (GPU,)) if path.exists() else None

    def wait_healths(self, *healths: str, within_s: float = 60.0) -> None:
        """Until the cluster knows the cards to be so; a health is compared as far as it is given."""
        self.wait(f"cards are {healths}", lambda: _why_not(self.cards(), healths), within_s=within_s)

    def wait(self, what: str, why_not: Callable[[], str | None], *, within_s: float = 60.0) -> None:
        """As rigs wait."""
        until(f"{self.name}: {what}", why_not, within_s)

    def lease(self) -> Json:
        """The node's heartbeat."""
        return self.rig.cluster.api.get(LEASES.at(OUR_NAMESPACE, self.name))

    def events(self) -> list[dict[str, Any]]:
        """What people were told about the node by us."""
        found = self.rig.cluster.api.list("/api/v1/namespaces/default/events")
        return [each for each in found if each.get("reportingComponent") == "partage-advertiser"]

    def figures(self) -> dict[str, float]:
        """The advertiser's metrics, by name with labels."""
        url = f"http://127.0.0.1:{PORT}/metrics"
        script = f"import urllib.request; print(urllib.request.urlopen({url!r}).read().decode())"
        text = self.machine.run(sys.executable, "-I", "-c", script)
        lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}


def _why_not(cards: tuple[Card, ...], healths: tuple[str, ...]) -> str | None:
    found = [card.health for card in cards]
    if len(found) == len(healths) and all(each.startswith(health) for each, health in zip(found, healths, strict=True)):
        return None
    return f"they are {json.dumps(found)}"
