"""A round: a hundred starts at once while every service dies, and then the books.

`Ground` is the machine as it is seen from outside: where its sockets and folders are, and which process serves what.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from partage_base.cri import UnaryClient
from partage_cli.machine.places import CONTAINERD_SOCKET
from partage_cli.machine.pods.record import ANNOTATION
from partage_cli.machine.runtime.client import MachineRuntime
from partage_cli.machine.wire.messages import MANAGER_SOCKET
from partage_isolation.wire.client import BrokerClient, ControlError
from partage_plugins.codecs import decode_inventory
from partage_plugins.errors import PartageError
from partage_plugins.vocabulary import GPU
from partage_plugins.vocabulary.limits import WHOLE_MILLI
from partage_plugins.vocabulary.places import INVENTORY_FILE
from rig.client.wait import until
from rig.images import busybox
from soak.starts.books import differences, granted
from soak.starts.deaths import deaths, kill
from soak.starts.sampler import Samples, sampling
from soak.starts.starters import Verdict, all_started
from support.machine_services import pid_of
from support.machine_stage import MachineStage
from support.manager_lines import Gone, Json, Manager

CARDS: Final = 8
STARTS: Final = 100
IMAGE: Final = "busybox"
SHARE_MILLI: Final = 300
RESERVATIONS: Final = "run/partage/crishim/reserved"
SETTLES_WITHIN_S: Final = 60.0
FORGOTTEN_WITHIN_S: Final = 240.0
"""Above the broker's own patience with a container that never comes."""


@dataclass(frozen=True)
class Ground:
    root: Path
    containerd: Path
    pid_of: Callable[[str], int]
    """Of a service; 0 while there is none."""

    @classmethod
    def on(cls, stage: MachineStage) -> Ground:
        """The stage's machine, whose containers are pulled from its registry."""
        stage.registry.push(busybox(), IMAGE)
        stage.crictl("pull", IMAGE)
        root = stage.machine.path("/")
        return cls(root, root / CONTAINERD_SOCKET, partial(pid_of, stage.up.pid))

    @property
    def manager(self) -> Manager:
        return Manager(self.root / MANAGER_SOCKET)

    def memory_of(self) -> Mapping[str, int]:
        """By card."""
        inventory = decode_inventory((self.root / INVENTORY_FILE).read_bytes(), [GPU])
        part = inventory.part(GPU)
        assert part is not None
        return {card.id: card.memory_bytes for card in part.cards}


@dataclass(frozen=True)
class Found:
    seed: int
    ran: int
    told_why: int
    samples: int
    wrong: Sequence[str]


def one_round(ground: Ground, seed: int) -> Found:
    cards = ground.memory_of()
    expected = len(cards) * (WHOLE_MILLI // SHARE_MILLI)
    with sampling(ground.containerd, cards) as samples:
        killer = threading.Thread(target=kill, args=(deaths(seed), ground.pid_of))
        killer.start()
        verdicts = all_started(ground.manager, [pod(f"start-{number}") for number in range(STARTS)])
        killer.join()
        running = {each.name for each in verdicts if each.runs}
        until("all accounts are the same", lambda: "; ".join(wrong_books(ground, running)) or None, SETTLES_WITHIN_S)
    clear(ground, running)
    return Found(seed, len(running), len(verdicts) - len(running), samples.taken, judged(verdicts, samples, expected))


def pod(name: str) -> Json:
    """What waits to be told to end."""
    limits = {"partage.dev/gpu-milli": str(SHARE_MILLI)}
    container = {"name": "main", "image": IMAGE, "command": ["sleep", "100000"], "resources": {"limits": limits}}
    spec = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def judged(verdicts: Sequence[Verdict], samples: Samples, expected: int) -> list[str]:
    running = sum(each.runs for each in verdicts)
    return [
        *samples.wrong,
        *([f"{running} run, of {expected} that fit"] if running != expected else []),
        *([f"no sample saw all of them: the most was {samples.most_milli} milli"] if not samples.most_milli else []),
        *(f"{each.name} was not told why" for each in verdicts if not each.runs and not each.why),
    ]


def wrong_books(ground: Ground, running: set[str]) -> list[str]:
    """What does not fit together: every container has its record, every record its container, and no more is held."""
    try:
        said = {"who was told yes": frozenset(running), **asyncio.run(_books(ground)), **_told(ground)}
        info = ground.manager.ask({"do": "info"})
        kept = in_broker(ground)
    except (PartageError, ControlError, Gone) as error:
        return [str(error)]
    held = sum(card["given_milli"] for card in info["cards"])
    left = [path.name for path in (ground.root / RESERVATIONS).glob("[!.]*")]
    return [
        *differences(said),
        *([f"the broker lacks {sorted(running - kept)}"] if running - kept else []),
        *([f"the manager has given {held} milli"] if held != len(running) * SHARE_MILLI else []),
        *([f"{info['waiting']} wait"] if info["waiting"] else []),
        *([f"crishim holds reservations: {left}"] if left else []),
    ]


async def _books(ground: Ground) -> dict[str, frozenset[str]]:
    """The runtime's own: pods by their records, and of containers that run."""
    peer = UnaryClient(ground.containerd)
    try:
        runtime = MachineRuntime(peer)
        sandboxes, containers = await runtime.sandboxes(), await runtime.containers()
    finally:
        peer.close()
    name_of = {each.id: each.name for each in sandboxes}
    granted_ = [each for each in containers if granted(each.annotations)]
    return {
        "the runtime's sandboxes": frozenset(name_of.values()),
        "sandboxes with a record": frozenset(each.name for each in sandboxes if ANNOTATION in each.annotations),
        "containers": frozenset(name_of.get(each.sandbox_id, f"no sandbox of {each.id}") for each in containers),
        "containers with a grant": frozenset(name_of.get(each.sandbox_id, "") for each in granted_),
    }


def _told(ground: Ground) -> dict[str, frozenset[str]]:
    """By the manager."""
    pods = ground.manager.ask({"do": "ps", "all": True})["pods"]
    return {
        "the manager": frozenset(pod["name"] for pod in pods if pod["phase"] == "running"),
        "the manager, with what has ended": frozenset(pod["name"] for pod in pods),
    }


def in_broker(ground: Ground) -> set[str]:
    """For a while it keeps what was made ready and never came: its container may be on its way."""
    return {each.pod.name for each in BrokerClient(ground.root, deadline_s=10).tell().containers}


def clear(ground: Ground, names: set[str]) -> None:
    for name in sorted(names):
        ground.manager.ask({"do": "rm", "name": name, "force": True})
    until("nothing is left", lambda: "; ".join(wrong_books(ground, set())) or None, SETTLES_WITHIN_S)


def wait_forgotten(ground: Ground) -> None:
    until("the broker has forgotten all", lambda: ", ".join(in_broker(ground)) or None, FORGOTTEN_WITHIN_S)
