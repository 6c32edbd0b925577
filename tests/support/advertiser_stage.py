"""A node with simulated cards and a running advertiser, for tests and demonstrations.

The advertiser authenticates as in a cluster: with the service account that we deliver, by a token for this node in a
file that can be replaced while it runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from partage_advertiser.liveness_files import LABEL, MIG_LABEL
from partage_plugins.api import GPU, Card
from partage_plugins.api.inventory import Inventory
from partage_plugins.api.keys import INVENTORY as ANNOTATION
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.codecs import decode_inventory
from rig.client.resources import EVENTS, LEASES, NODES, Json
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.identities import write_private
from rig.identity.people import ADVERTISER, OUR_NAMESPACE
from rig.machine.components import Component
from rig.nodes.machine import Machine
from rig.nodes.node import Daemon, Node
from rig.patience import PATIENCE_S, patience_s
from rig.rig import Rig
from support.bytecode import BYTECODE
from support.metrics import everywhere, figures, why_not_ready
from support.simgpu_stage import DRIVER, tell

INVENTORY: Final = f"/{INVENTORY_FILE}"
PORT: Final = 9500
QUIET_S: Final = 3
"""The quiet period after a card comes back, short enough for a test to wait for its end."""
MODULE: Final = "partage_advertiser"
DEVICE_PLUGIN_LABEL: Final = "nvidia.com/gpu.deploy.device-plugin"
CHILD: Final = "partage_gpu.nvml.child"


def kubeconfig(rig: Rig, node: str) -> Path:
    """A kubeconfig whose token, in a file beside it, is bound to the node as that of a DaemonSet's pod."""
    token = give_token(rig, node, rig.cluster.nodes.get(node))
    config = json.loads(rig.cluster.as_account(ADVERTISER).kubectl.kubeconfig.read_bytes())
    config["users"][0]["user"] = {"tokenFile": str(token)}
    return write_private(token.with_suffix(".kubeconfig"), json.dumps(config).encode())


def give_token(rig: Rig, node: str, bound_to: Json) -> Path:
    """Replace the token in the node's file atomically, as kubelet does."""
    path = rig.control.identities.folder / f"advertiser-{node}.token"
    token = rig.cluster.token(ADVERTISER, bound_to)
    write_private(path.with_suffix(".new"), token.encode()).rename(path)
    return path


def advertiser(access: Path, node: str, *flags: str, env: Mapping[str, str] | None = None, port: int = PORT) -> Daemon:
    argv = (*_command(node, "--kubeconfig", str(access)), "--metrics-address", everywhere(port), *flags)
    return Daemon("advertiser", argv, partial(why_not_ready, port=port), _environment(env))


def _command(node: str, *flags: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-m", MODULE, "--node-name", node, "--log-format", "text", *flags)


def _environment(env: Mapping[str, str] | None) -> dict[str, str]:
    return {
        **BYTECODE,
        "PARTAGE_DRIVER_ROOT": DRIVER,
        "PARTAGE_GPU_QUIET_S": str(QUIET_S),
        **(env or {}),
    }


@dataclass(frozen=True)
class AdvertiserStage:
    """One node of a rig with its cards, and what is reported about them."""

    rig: Rig
    name: str
    started: list[Component] = field(default_factory=list[Component])

    @property
    def node(self) -> Node:
        return self.rig.nodes[self.name]

    @property
    def machine(self) -> Machine:
        return self.node.machine

    def start(self, *flags: str, env: Mapping[str, str] | None = None) -> Component:
        component = self.begin(*flags, env=env)
        component.wait_ready()
        return component

    def begin(
        self, *flags: str, env: Mapping[str, str] | None = None, access: Path | None = None, port: int = PORT
    ) -> Component:
        """Start one without waiting for readiness; with an earlier `access` it needs no API server."""
        daemon = advertiser(access or kubeconfig(self.rig, self.name), self.name, *flags, env=env, port=port)
        component = self.node.daemon(daemon)
        component.start()
        self.started.append(component)
        return component

    def once(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run the command on the node as a user would, to its end."""
        return self.typed("--kubeconfig", str(kubeconfig(self.rig, self.name)), *words, env=env)

    def typed(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.machine.way_in, *_command(self.name, *words)],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent", **_environment(env)},
            capture_output=True,
            text=True,
            timeout=patience_s(),
            check=False,
        )

    def tell_driver(self, command: str) -> str:
        """Send a control command to the simulated driver."""
        return tell(self.machine, command)

    def told_text(self) -> str | None:
        return self.rig.cluster.nodes.annotations(self.name).get(ANNOTATION)

    def told(self) -> Inventory | None:
        text = self.told_text()
        return decode_inventory(text, (GPU,)) if text else None

    def cards(self) -> tuple[Card, ...]:
        return _cards(self.told())

    def written_text(self) -> str | None:
        path = self.machine.path(INVENTORY)
        return path.read_text() if path.exists() else None

    def written(self) -> Inventory | None:
        text = self.written_text()
        return decode_inventory(text, (GPU,)) if text else None

    def wait_healths(self, *healths: str, within_s: float = PATIENCE_S) -> None:
        """Wait until the cluster knows these healths of the cards; each is compared as a prefix."""
        self.wait(f"cards are {healths}", lambda: why_not(self.cards(), healths), within_s=within_s)

    def wait_written(self, *healths: str) -> None:
        self.wait(f"the file has {healths}", lambda: why_not(_cards(self.written()), healths))

    def wait(self, what: str, why: Callable[[], str | None], *, within_s: float = PATIENCE_S) -> None:
        until(f"{self.name}: {what}", why, within_s)

    def lease(self) -> Json:
        return self.rig.cluster.api.get(LEASES.at(OUR_NAMESPACE, self.name))

    def events(self) -> list[dict[str, Any]]:
        """The advertiser's Events about the node."""
        found = self.rig.cluster.api.list(EVENTS.at("default"))
        return [each for each in found if each.get("reportingComponent") == "partage-advertiser"]

    def wait_event(self, reason: str, words: str) -> None:
        def why_not_told() -> str | None:
            found = [(each["reason"], each["message"]) for each in self.events()]
            return None if any(each == reason and words in message for each, message in found) else f"told: {found}"

        self.wait(f"people hear {reason} with {words!r}", why_not_told)

    def figures(self) -> dict[str, float]:
        return figures(self.machine, PORT)

    def figure(self, name: str) -> float:
        """One metric; 0 if it was never counted."""
        return self.figures().get(name, 0.0)

    def wait_figure(self, name: str, least: float) -> None:
        def why_lower() -> str | None:
            value = self.figure(name)
            return None if value >= least else f"it is {value:g}"

        self.wait(f"{name} is at least {least:g}", why_lower)

    def wait_more(self, name: str, more: float) -> None:
        """Wait until a metric has grown by `more`."""
        self.wait_figure(name, self.figure(name) + more)

    def processes(self, module: str) -> list[Path]:
        """The node's processes in /proc that run a module of ours."""
        namespace = Path(f"/proc/{self.machine.pid}/ns/pid").readlink()
        return [path for path in Path("/proc").glob("[0-9]*") if _runs(path, module, namespace)]


@contextmanager
def staged(rig: Rig, name: str) -> Generator[AdvertiserStage]:
    """Yield the node and restore it afterwards, except for pods and drivers."""
    stage = AdvertiserStage(rig, name)
    try:
        yield stage
    finally:
        for component in stage.started:
            component.kill()
        if stage.started:
            sys.stdout.write(stage.started[-1].tail(60))  # for the report of a failure
        _forget(stage)


def _forget(stage: AdvertiserStage) -> None:
    """Delete everything that was published, on the node and in the API server."""
    stage.machine.run("rm", "-rf", "--", INVENTORY, "/run/partage/advertiser", "/run/partage/broker")
    api = stage.rig.cluster.api
    labels = dict.fromkeys((LABEL, MIG_LABEL, DEVICE_PLUGIN_LABEL))
    api.patch(NODES.at(name=stage.name), {"metadata": {"annotations": {ANNOTATION: None}, "labels": labels}})
    with suppress(Refused):  # there is none if the advertiser did not get that far
        api.delete(LEASES.at(OUR_NAMESPACE, stage.name))
    api.delete(EVENTS.at("default"))


def why_not(cards: tuple[Card, ...], healths: tuple[str, ...]) -> str | None:
    """The difference from the expected healths, or None; each is compared as a prefix."""
    found = [card.health for card in cards]
    if len(found) == len(healths) and all(each.startswith(health) for each, health in zip(found, healths, strict=True)):
        return None
    return f"they are {json.dumps(found)}"


def _cards(inventory: Inventory | None) -> tuple[Card, ...]:
    part = inventory.part(GPU) if inventory else None
    return part.cards if part else ()


def _runs(process: Path, module: str, namespace: Path) -> bool:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
        return module.encode() in words and (process / "ns/pid").readlink() == namespace
    except OSError:  # the process ended meanwhile
        return False
