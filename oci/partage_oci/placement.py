"""Which cards a pod gets on this machine: the scheduler's own decider over one node.

Placing a pod counts it at once, so that of two decisions the second sees the first. Pure; one thread.
CPU and main memory are not counted here: the room has a size that never lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from partage_base.keyring import SigningKey
from partage_cli.machine.manager.shortage import CardRoom, NoRoom, shortage
from partage_cli.machine.pods.pod import Container, Pod
from partage_plugins.codecs import decode_allocation, encode_allocation, read_gang, sign
from partage_plugins.errors import Refused
from partage_plugins.registry.registry import Registry
from partage_plugins.vocabulary import (
    GPU,
    Allocation,
    ContainerName,
    GpuPart,
    Inventory,
    Namespace,
    NodeName,
    PodContainer,
    PodName,
    PodRef,
    PodRequest,
    PodUid,
    Role,
    Room,
)
from partage_plugins.vocabulary import Pod as ReadPod
from partage_plugins.vocabulary.card_memory import Promised, together
from partage_plugins.vocabulary.keys import ALLOCATION, SIGNATURE
from partage_plugins.vocabulary.usage import usages
from partage_scheduler.core import decider_over

_ROOM: Final = Room(cpu_milli=1 << 40, memory_bytes=1 << 60)
_EMPTY: Final = Inventory(kinds={})
_KUBERNETES: Final = "kubernetes.io/"


class Placement:
    """Who holds what of this machine's cards."""

    def __init__(self, node: NodeName, registry: Registry, key: SigningKey) -> None:
        self._node, self._kinds, self._key = node, tuple(registry.kinds), key
        self._decider, self._side = decider_over(registry)
        self._decider.add_node(node, _EMPTY, _ROOM)
        self._inventory = _EMPTY
        self._held: dict[PodUid, Allocation] = {}

    def request(self, pod: Pod, uid: PodUid) -> PodRequest:
        """What it asks for; raises what dialects raise, and `Refused` for devices that nothing here gives."""
        meta, spec = pod.metadata, pod.spec
        ref = PodRef(namespace=Namespace(meta.namespace), name=PodName(meta.name), uid=uid)
        inits = (_read(each, "init") for each in spec.init_containers)
        apps = (_read(each, "app") for each in spec.containers)
        read = ReadPod(ref=ref, labels=meta.labels, annotations=meta.annotations, containers=(*inits, *apps))
        gang = read_gang(meta.namespace, meta.annotations, meta.labels)
        request = replace(self._side.requests(read), gang=gang)
        self._require_answered(read, request)
        return request

    def place(self, request: PodRequest, gen: int) -> Allocation | NoRoom:
        """Cards, which the pod holds from now on, or why there are none. Raises what plugins raise."""
        decision = self._decider.decide(request)
        if decision is None:
            return self._no_room(request)
        allocation = decision.allocation(gen)
        self.hold(allocation)
        return allocation

    def why_not(self, request: PodRequest) -> NoRoom | None:
        """Why it does not fit now; None where it does. Nothing is taken."""
        return None if self._decider.decide(request) is not None else self._no_room(request)

    def hold(self, allocation: Allocation) -> None:
        """A pod that was placed before holds this."""
        self.release(allocation.pod)
        self._decider.take(allocation, Room())
        self._held[allocation.pod] = allocation

    def release(self, uid: PodUid) -> bool:
        """Returns whether it held anything."""
        held = self._held.pop(uid, None)
        self._decider.give_back(uid)
        return held is not None and bool(held.containers)

    def annotations(self, allocation: Allocation) -> Mapping[str, str]:
        """As crishim believes it; nothing where no device was given."""
        if not allocation.containers:
            return {}
        text = encode_allocation(allocation)
        return {ALLOCATION: text, SIGNATURE: sign(text, self._key.private)}

    def written(self, annotations: Mapping[str, str], uid: PodUid, gen: int) -> Allocation:
        """What a sandbox of this machine was made with; raises `DecodeError` and `Refused`.

        Its signature is crishim's affair: to count what was not signed gives nothing away.
        """
        text = annotations.get(ALLOCATION)
        if text is None:
            return Allocation(gen=gen, pod=uid, node=self._node, containers={})
        allocation = decode_allocation(text, self._kinds)
        if (allocation.pod, allocation.node) != (uid, self._node):
            raise Refused(f"the allocation is that of pod {allocation.pod} on node {allocation.node}")
        return allocation

    def take_in(self, inventory: Inventory) -> bool:
        """Whether it is another one than before; what is held stays held."""
        if inventory == self._inventory:
            return False
        self._inventory = inventory
        self._decider.replace_inventory(self._node, inventory)
        return True

    def rooms(self) -> tuple[CardRoom, ...]:
        part: GpuPart | None = self._inventory.part(GPU)
        if part is None:
            return ()
        milli, memory = dict.fromkeys((card.id for card in part.cards), 0), dict[str, list[Promised]]()
        for allocation in self._held.values():
            for usage in usages(allocation):
                milli[usage.card] = milli.get(usage.card, 0) + usage.share_milli
                memory.setdefault(usage.card, []).append(usage.memory)
        return tuple(CardRoom(card, milli[card.id], together(memory.get(card.id, ()))) for card in part.cards)

    def _require_answered(self, pod: ReadPod, request: PodRequest) -> None:
        """A resource that only a cluster's device plugin would give must not be left out in silence."""
        known = self._side.resources()
        for container in pod.containers:
            for name in container.limits:
                if (
                    "/" in name
                    and _KUBERNETES not in name
                    and name not in known
                    and container.name not in request.asking
                ):
                    raise Refused(
                        f"container {container.name} asks for {name}, which nothing on this machine gives; "
                        "say partage.dev/gpu-milli or partage.dev/gpu-memory"
                    )

    def _no_room(self, request: PodRequest) -> NoRoom:
        reason = self._decider.said_of(request, self._node)
        return shortage(reason, tuple(request.of(GPU).values()), self.rooms())


def _read(container: Container, role: Role) -> PodContainer:
    amounts = container.resources
    return PodContainer(
        name=ContainerName(container.name), role=role, limits=_texts(amounts.limits), requests=_texts(amounts.requests)
    )


def _texts(amounts: Mapping[str, str | int]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}
