"""Places for pods: at once, or in turn. Every decision is one call on one thread, so no two see the same free card."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from partage_base.keyring import SigningKey
from partage_cli.machine.manager.errors import Objection, objection_of
from partage_cli.machine.manager.queue import Queue
from partage_cli.machine.pods.pod import Container, Pod
from partage_oci.placement import Placement
from partage_oci.shortage import CardRoom, NoRoom
from partage_plugins.codecs import decode_allocation, encode_allocation, sign
from partage_plugins.errors import PartageError, PluginBroken, Refused
from partage_plugins.vocabulary import (
    Allocation,
    ContainerName,
    Inventory,
    Namespace,
    NodeName,
    PodContainer,
    PodName,
    PodRef,
    PodRequest,
    PodUid,
    Role,
)
from partage_plugins.vocabulary import Pod as ReadPod
from partage_plugins.vocabulary.keys import ALLOCATION, SIGNATURE
from partage_plugins.vocabulary.kinds import AnyKind


class Ticket:
    """One that waits for its turn."""

    def __init__(self, request: PodRequest) -> None:
        self.request = request
        self.turn: asyncio.Future[Allocation] = asyncio.get_running_loop().create_future()


class Admission:
    def __init__(self, placement: Placement, node: NodeName, kinds: tuple[AnyKind, ...], key: SigningKey) -> None:
        self._placement, self._node, self._kinds, self._key = placement, node, kinds, key
        self._queue = Queue[PodUid, Ticket]()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def request(self, pod: Pod, uid: PodUid) -> PodRequest:
        """Raises `Objection` where it is written wrongly."""
        try:
            return self._placement.request(_read(pod, uid))
        except PartageError as error:
            raise Objection("bad-question", str(error)) from None

    def now(self, request: PodRequest) -> Allocation:
        """Raises `Objection` where it does not fit. It does not matter who waits."""
        found = self._attempt(request)
        if isinstance(found, Allocation):
            return found
        raise _objection(request, found)

    def require_possible(self, request: PodRequest, *, waits: bool) -> None:
        """Raises `Objection` where it does not fit now, or can't ever while the machine is as it is."""
        try:
            found = self._placement.why_not(request)
        except PluginBroken:
            raise
        except PartageError as error:
            raise objection_of(error) from None
        if found is not None and (found.lasts or not waits):
            raise _objection(request, found)

    def why_waits(self, request: PodRequest) -> str:
        """What one that waits is told; empty where it need not."""
        found = self._placement.why_not(request)
        if found is not None:
            return f"{request.pod.name} waits: {found.why}"
        return f"{request.pod.name} waits behind {len(self._queue)} others" if self._queue else ""

    def queue_up(self, request: PodRequest) -> Ticket:
        """Its turn may have come already. Whoever gives it up calls `leave`."""
        ticket = Ticket(request)
        self._queue.join(request.pod.uid, ticket)
        self._serve()
        return ticket

    async def turn(self, request: PodRequest) -> Allocation:
        """Waits; one that is cancelled holds nothing."""
        ticket = self.queue_up(request)
        try:
            return await ticket.turn
        except BaseException:
            self.leave(request.pod.uid)
            raise

    def leave(self, uid: PodUid) -> None:
        """It waits no more, and holds nothing, also where its turn had come."""
        self._queue.leave(uid)
        self.release(uid)

    def hold(self, allocation: Allocation) -> None:
        self._placement.hold(allocation)

    def release(self, uid: PodUid) -> None:
        if self._placement.release(uid):
            self._serve()

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

    def annotations(self, allocation: Allocation, gen: int) -> Mapping[str, str]:
        """What a sandbox is made with, signed, as crishim believes it; nothing where no device was given."""
        if not allocation.containers:
            return {}
        text = encode_allocation(replace(allocation, gen=gen))
        return {ALLOCATION: text, SIGNATURE: sign(text, self._key.private)}

    def take_in(self, inventory: Inventory) -> None:
        if self._placement.take_in(inventory):
            self._serve()

    def rooms(self) -> Sequence[CardRoom]:
        return self._placement.rooms()

    def _serve(self) -> None:
        for _, (ticket, found) in self._queue.served(self._served):
            if ticket.turn.done():  # it was cancelled, and its task has not run since
                if isinstance(found, Allocation):
                    self._placement.release(found.pod)
            elif isinstance(found, Allocation):
                ticket.turn.set_result(found)
            else:
                ticket.turn.set_exception(found)

    def _served(self, ticket: Ticket) -> tuple[Ticket, Allocation | Objection] | NoRoom:
        try:
            found = self._attempt(ticket.request)
        except Objection as error:
            return ticket, error
        return found if isinstance(found, NoRoom) else (ticket, found)

    def _attempt(self, request: PodRequest) -> Allocation | NoRoom:
        try:
            return self._placement.place(request, gen=1)
        except PluginBroken:
            raise
        except PartageError as error:
            raise objection_of(error) from None


def _objection(request: PodRequest, found: NoRoom) -> Objection:
    return Objection("no-room", f"{request.pod.name} does not fit: {found.why}")


def _read(pod: Pod, uid: PodUid) -> ReadPod:
    meta, spec = pod.metadata, pod.spec
    ref = PodRef(namespace=Namespace(meta.namespace), name=PodName(meta.name), uid=uid)
    inits = (_container(each, "init") for each in spec.init_containers)
    apps = (_container(each, "app") for each in spec.containers)
    return ReadPod(ref=ref, labels=meta.labels, annotations=meta.annotations, containers=(*inits, *apps))


def _container(container: Container, role: Role) -> PodContainer:
    amounts = container.resources
    return PodContainer(
        name=ContainerName(container.name), role=role, limits=_texts(amounts.limits), requests=_texts(amounts.requests)
    )


def _texts(amounts: Mapping[str, str | int]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}
