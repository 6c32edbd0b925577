"""A node whose cards NVIDIA's device plugin allocates, a scheduler that reserves some, and a witness that checks.

with pooled(root, say=print) as chain, Witness(chain) as witness:
    native_pod(chain, "train").wait_running()
    shared_pod(chain, "serve", 500).wait_running()
assert not witness.wrong
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from partage_base.cri import CriError, PodResources, RuntimeClient, UnaryClient
from partage_plugins.api import GPU
from partage_plugins.api.gpu import RESERVATIONS
from partage_plugins.api.keys import CONTAINER, GPU_MEMORY, GPU_MILLI
from partage_plugins.codecs import decode_container
from rig import images
from rig.client.pods import Pod
from rig.client.wait import until
from rig.identity.people import TEAM
from rig.identity.permissions import delivered
from rig.machine.components import serving
from support.chain_stage import Chain, chained
from support.crishim_stage import IDLE
from support.simgpu_stage import RESOURCE, device_plugin

NODE: Final = "n1"
CARDS: Final = 2
QUIET_S: Final = 2.0
_SAMPLE_EVERY_S: Final = 0.1
_SOCKETS: Final = ("/var/lib/kubelet/pod-resources/kubelet.sock", "/run/containerd/containerd.sock")
OnCard = tuple[str, str]
"""A card, and the id of a container of ours on it."""


def native_pod(chain: Chain, name: str) -> Pod:
    """A pod that requests a card from kubelet."""
    return chain.create_pod(name, image="busybox", command=IDLE, limits={RESOURCE: "1"})


def shared_pod(chain: Chain, name: str, milli: int) -> Pod:
    return chain.pod(name, limits={GPU_MILLI: str(milli), GPU_MEMORY: "1Gi"})


def reservations(chain: Chain) -> list[Pod]:
    return chain.rig.cluster.pods.list(RESERVATIONS)


def pools_of(chain: Chain) -> list[str]:
    """The pool of each card."""
    return [card.pool for card in chain.advertisers[NODE].cards()]


def wait_all_kubelets(chain: Chain) -> None:
    """Wait until no card is reserved, so that kubelet can allocate all of them."""

    def why_not() -> str | None:
        held = [pod.name for pod in reservations(chain)]
        pools = pools_of(chain)
        return f"{held} are there, cards are {pools}" if held or set(pools) != {"kubelet"} else None

    until("all cards are kubelet's", why_not)


@contextmanager
def pooled(root: Path, *, say: Callable[[str], None], keep_logs: Path | None = None) -> Generator[Chain]:
    """The stage without pods; all cards are kubelet's."""
    flags = ("--reserve-image", images.SANDBOX, "--reserve-quiet-s", str(QUIET_S))
    with chained(root, say=say, keep_logs=keep_logs, flags=flags, nodes=(NODE,), profile="gpu-operator") as chain:
        _allow(chain)
        with serving(chain.rig.nodes[NODE].daemon(device_plugin())):
            wait_all_kubelets(chain)
            chain.rig.cluster.nodes.wait_allocatable(NODE, RESOURCE, CARDS)
            yield chain


def _allow(chain: Chain) -> None:
    """Create what `manifests/reservations` delivers."""
    for file in ("namespace", "priorityclass", "rbac"):
        for manifest in delivered(f"reservations/{file}.yaml"):
            chain.rig.cluster.api.apply(manifest)


class Witness:
    """While it is open, samples what kubelet allocated, and which containers of ours are on which card.

    A container of ours that the runtime lists before and after kubelet's answer existed at the time of the answer.
    """

    def __init__(self, chain: Chain) -> None:
        self._paths = [chain.rig.nodes[NODE].machine.path(path) for path in _SOCKETS]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="witness")
        self.wrong: list[str] = []
        self.samples = 0
        self.native_seen = 0
        """Samples in which kubelet had allocated a card to a native pod."""
        self.shared_seen = 0
        """Samples in which a container of ours was on a card."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def wait_looks(self, more: int) -> None:
        """Wait for this number of further samples."""
        wanted = self.samples + more
        until("the witness looks", lambda: None if self.samples >= wanted else f"it looked {self.samples} times")

    def _watch(self) -> None:
        while not self._ended.wait(_SAMPLE_EVERY_S):
            with suppress(CriError):  # kubelet or containerd is busy; the next sample counts
                asyncio.run(self._sample())

    async def _sample(self) -> None:
        with closing(UnaryClient(self._paths[0])) as kubelet, closing(UnaryClient(self._paths[1])) as containerd:
            runtime = RuntimeClient(containerd)
            before = await _shared(runtime)
            native = {
                device: f"{each.namespace}/{each.pod}"
                for each in await PodResources(kubelet).served()
                if each.namespace != RESERVATIONS
                for device in each.devices
            }
            there = before & await _shared(runtime)
        self.samples += 1
        self.native_seen += bool(native)
        self.shared_seen += bool(there)
        self.wrong += [f"{container} is on {card} of {native[card]}" for card, container in there if card in native]


async def _shared(runtime: RuntimeClient) -> set[OnCard]:
    """Containers that were created and have not exited."""
    ours = [each for each in await runtime.containers() if CONTAINER in each.annotations and not each.exited]
    return {
        (str(grant.card), each.id)
        for each in ours
        for grant in decode_container(each.annotations[CONTAINER], (GPU,)).of(GPU)
    }


@dataclass
class Churn:
    """Creates and deletes native pods and shares at random."""

    chain: Chain
    seed: int = 0
    natives: list[Pod] = field(default_factory=list[Pod])
    shares: list[Pod] = field(default_factory=list[Pod])
    made: int = 0
    ran: int = 0
    """Pods that were running when they were deleted."""

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311  nothing is kept secret

    def step(self) -> None:
        """Create or delete one pod."""
        living = [each for kind in (self.natives, self.shares) for each in kind]
        if living and (len(living) >= 2 * CARDS or self._random.random() < 0.4):
            self._end(self._random.choice(living))
            return
        self.made += 1
        if self._random.random() < 0.5:
            self.natives.append(native_pod(self.chain, f"native-{self.made}"))
        else:
            milli = self._random.choice((200, 500, 1000))
            self.shares.append(shared_pod(self.chain, f"share-{self.made}", milli))

    def end(self) -> None:
        """Delete all of them."""
        for pod in (*self.natives, *self.shares):
            self._end(pod)
        for pod in self.chain.rig.cluster.pods.list(TEAM):
            pod.wait_gone()

    def _end(self, pod: Pod) -> None:
        pod.refresh()
        self.ran += pod.phase == "Running"
        for kind in (self.natives, self.shares):
            if pod in kind:
                kind.remove(pod)
        pod.delete(grace_s=1)
