"""Containers of engines that are no runtime of the node, such as Docker and Podman: each is reported when it starts.

A claim's device adds a hook to its containers. The hook runs once a container has its first process and its cgroup, but
before any program of it, and who may use the claim is recorded before the response. A container has ended when its
first process has, since a pid namespace ends with its first process. Containers of an earlier broker are recognized by
pid and start time.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from partage_base.peers import NoProcess, Peer, cgroup_components, has_ended, is_within, peer_named
from partage_isolation.audit.auditor import Lister
from partage_isolation.audit.listing import Listing, RuntimeContainer
from partage_isolation.errors import NoFolder, SpecRefused
from partage_isolation.store.specs import FOLDER, EngineContainer, Specs
from partage_isolation.wire.connection import Served
from partage_isolation.wire.containers import Containers
from partage_isolation.wire.messages import Enter
from partage_isolation.wire.served import Registry

_SHOWN: Final = 12
_log = structlog.get_logger()


class Engines:
    """Lists these containers together with the runtime's; see `audit.auditor.Lister`."""

    def __init__(self, containers: Containers, registry: Registry, runtime: Lister) -> None:
        self._containers, self._registry, self._runtime = containers, registry, runtime
        self._peers: dict[EngineContainer, Peer] = {}

    def enter(self, question: Enter) -> None:
        """Register a container that starts; raises a `BrokerError`, which keeps the container from starting."""
        shown = question.container[:_SHOWN]
        served = self._registry.served.get(question.key)
        if served is None or not served.spec.by_hook:
            raise SpecRefused(f"the grant of container {shown} has ended; start the container again")
        if served.spec.engine_container not in {None, question.container}:
            raise SpecRefused(f"container {shown} has the limits of another container, which that one has alone")
        try:
            peer = peer_named(question.pid)
        except NoProcess:
            raise SpecRefused(f"container {shown} has no process {question.pid} on this machine") from None
        try:
            self._take(served, question, peer)
        except BaseException:
            os.close(peer.pidfd)
            raise

    async def containers(self, *, with_claims: bool = False) -> Listing | None:
        """List all containers; None where the runtime does not respond."""
        listing = await self._runtime.containers(with_claims=with_claims)
        self._look()
        return None if listing is None else Listing((*listing.values(), *self._listed()))

    async def stop(self, container_id: str, *, grace_s: int) -> None:
        """Stop a container. One of an engine is killed; to the engine that looks like any container that dies."""
        mine = [each for each in self._peers if each.id == container_id]
        if not mine:
            await self._runtime.stop(container_id, grace_s=grace_s)
        for each in mine:
            self._kill(each)

    def close(self) -> None:
        """Close all pidfds. The containers run on, and the next broker recognizes them."""
        for peer in self._peers.values():
            os.close(peer.pidfd)
        self._peers.clear()

    def _take(self, served: Served, question: Enter, peer: Peer) -> None:
        if not is_within(cgroup_components(peer.pid), question.container):
            raise SpecRefused(
                f"container {question.container[:_SHOWN]} has no control group of its own, by which its programs would "
                "be known; start it with one, as engines do where nothing else is said"
            )
        container = EngineContainer(question.container, peer.pid, peer.start)
        self._containers.entered(served, container)
        before = self._peers.pop(container, None)
        if before is not None:
            os.close(before.pidfd)
        self._peers[container] = peer

    def _look(self) -> None:
        """Remove ended containers from their claims."""
        claims = [served for served in self._registry.served.values() if served.spec.by_hook]
        for served in claims:
            gone = [each for each in served.spec.engine_containers if not self._lives(each)]
            if gone:
                try:
                    self._containers.left(served, gone)
                except NoFolder as error:
                    _log.error("failed to record that a container has ended; will retry", why=str(error))
        known = {each for served in claims for each in served.spec.engine_containers}
        for each in self._peers.keys() - known:
            os.close(self._peers.pop(each).pidfd)

    def _lives(self, container: EngineContainer) -> bool:
        peer = self._peers.get(container)
        if peer is None:
            peer = known_again(container.pid, container.start)
            if peer is None:
                return False
            self._peers[container] = peer
        return not has_ended(peer.pidfd)

    def _listed(self) -> Iterator[RuntimeContainer]:
        for key, served in self._registry.served.items():
            for each in served.spec.engine_containers:
                yield RuntimeContainer(each.id, key, each.pid, running=True, claim=served.spec.claim)

    def _kill(self, container: EngineContainer) -> None:
        peer = self._peers.get(container)
        if peer is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(peer.pidfd, signal.SIGKILL)


def killed(root: Path) -> Iterator[EngineContainer]:
    """Kill running containers where no broker runs; yields each one once it is killed."""
    for container, peer in _living(root):
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(peer.pidfd, signal.SIGKILL)
            yield container


def living(root: Path) -> tuple[EngineContainer, ...]:
    """Running containers, where no broker runs."""
    return tuple(container for container, _ in _living(root))


def _living(root: Path) -> Iterator[tuple[EngineContainer, Peer]]:
    if not (root / FOLDER).exists():
        return
    for container in dict.fromkeys(each for spec in Specs(root).load()[0] for each in spec.engine_containers):
        peer = known_again(container.pid, container.start)
        if peer is not None:
            try:
                yield container, peer
            finally:
                os.close(peer.pidfd)


def known_again(pid: int, start: int) -> Peer | None:
    """A process from before this broker started; None if it is gone, or its pid was reused."""
    try:
        peer = peer_named(pid)
    except NoProcess:
        return None
    if peer.start == start:
        return peer
    os.close(peer.pidfd)
    return None
