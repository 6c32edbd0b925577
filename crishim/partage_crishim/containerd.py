"""What the runtime says: who holds grants, and under which handler a sandbox runs.

A container's annotations and a sandbox's handler never change, so each is read once. When a listing may be used again
is `deciding.books`' to say; `max_age_s` only bounds how many reservations pile up on an old one. It is longer than the
collector's pause, which lists anyway: so hardly a create waits for a listing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from partage_base.cri import CriError, ListedContainer, ListedSandbox, RuntimeClient
from partage_crishim.reservations import since_boot
from partage_crishim.rules.capacity import Holding
from partage_crishim.rules.errors import NodeNotReady
from partage_crishim.rules.holdings import Listing, OnNode
from partage_plugins.codecs import decode_container
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary import GPU, ContainerKey
from partage_plugins.vocabulary.keys import CONTAINER

_MOST_HANDLERS: Final = 4096


class Containerd:
    def __init__(
        self, client: RuntimeClient, *, max_age_s: float = 60.0, clock: Callable[[], float] = since_boot
    ) -> None:
        self._client = client
        self._max_age_s = max_age_s
        self._clock = clock
        self._listing: Listing | None = None
        self._held: Mapping[str, Holding | None] = {}
        self._handlers: dict[str, str] = {}

    async def listing(self, *, fresh: bool) -> Listing:
        """Who holds grants; one that began before this call only where `fresh` is not asked for."""
        known = self._listing
        if fresh or known is None or known.began_s <= self._clock() - self._max_age_s:
            return await self._listed()
        return known

    def last(self) -> Listing:
        """What was listed last, whatever it is worth by now; nothing before the first time."""
        return self._listing or Listing(began_s=0.0, containers=())

    async def handler(self, sandbox_id: str) -> str:
        """The runtime handler of a sandbox; empty for the default one."""
        if sandbox_id not in self._handlers:
            sandbox = await self._sandbox(sandbox_id)
            if len(self._handlers) >= _MOST_HANDLERS:
                del self._handlers[next(iter(self._handlers))]
            self._handlers[sandbox_id] = sandbox.runtime_handler
        return self._handlers[sandbox_id]

    async def living(self, sandbox_id: str) -> tuple[ListedContainer, ...]:
        """The containers of a sandbox that have not ended."""
        containers = await self._containers()
        return tuple(each for each in containers if each.sandbox_id == sandbox_id and not each.exited)

    async def capabilities(self, container: ListedContainer) -> frozenset[str]:
        """All that its processes may have."""
        try:
            found = await self._client.capabilities(container.id)
        except CriError:
            raise _away() from None
        if found is None:
            raise NodeNotReady(
                "partage: the container runtime does not say what the other containers of this pod may do, and they "
                "share their processes with this one; do not share them, or ask for whole cards"
            )
        return found

    def keys_of(self, container_id: str) -> frozenset[ContainerKey]:
        """The key of a container, where the last listing shows it with grants."""
        return frozenset(each.held.key for each in self.last().containers if each.id == container_id and each.held)

    async def pods(self) -> frozenset[str]:
        """The uids of all pods that have a sandbox."""
        try:
            return frozenset(each.pod_uid for each in await self._client.sandboxes())
        except CriError:
            raise _away() from None

    async def _sandbox(self, sandbox_id: str) -> ListedSandbox:
        try:
            sandbox = await self._client.sandbox(sandbox_id)
        except CriError:
            raise _away() from None
        if sandbox is None:
            raise NodeNotReady("partage: the container runtime does not know this pod's sandbox; kubelet tries again")
        return sandbox

    async def _containers(self) -> tuple[ListedContainer, ...]:
        try:
            return await self._client.containers()
        except CriError:
            raise _away() from None

    async def _listed(self) -> Listing:
        began_s = self._clock()
        containers = await self._containers()
        ours = [each for each in containers if CONTAINER in each.annotations]
        held = {each.id: self._held[each.id] if each.id in self._held else _held(each) for each in ours}
        listing = Listing(
            began_s=began_s,
            containers=tuple(OnNode(id=each.id, exited=each.exited, held=held[each.id]) for each in ours),
        )
        if self._listing is None or self._listing.began_s < began_s:
            self._listing, self._held = listing, held
        return listing


def _held(container: ListedContainer) -> Holding | None:
    try:
        record = decode_container(container.annotations[CONTAINER], (GPU,))
    except DecodeError:
        return None
    cards = record.of(GPU)
    return Holding(key=record.key, pod=container.pod_uid, container=container.name, gen=record.gen, cards=cards)


def _away() -> NodeNotReady:
    return NodeNotReady(
        "partage: the container runtime does not answer crishim, so nobody knows what this node's cards carry; "
        "kubelet tries again"
    )
