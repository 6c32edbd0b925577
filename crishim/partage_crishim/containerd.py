"""Facts from the container runtime: its configuration, the containers that hold grants, and the handler of a sandbox.

A container's annotations and a sandbox's handler never change, so each is read once. `rules.holdings` defines when a
listing may be reused; its maximum age only bounds how many reservations accumulate on an old one. The collector lists
more often than that, so a create rarely waits for a listing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import structlog
from msgspec.structs import replace

from partage_base.cri import CriError, ListedContainer, MessageWrong, PeerRefused, RuntimeClient, RuntimeConfig
from partage_crishim.reservations import since_boot
from partage_crishim.rules.errors import NodeNotReady
from partage_crishim.rules.holdings import Holding, Listing, OnNode
from partage_plugins.api import GPU, ContainerKey
from partage_plugins.api.keys import CONTAINER
from partage_plugins.codecs import decode_container
from partage_plugins.errors import DecodeError

_MAX_AGE_S: Final = 60.0
_MOST_HANDLERS: Final = 4096
_PROGRAMS: Final = ("usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin")
"""Where systemd looks for a service's programs; with CRIU, some versions of containerd restore checkpoints."""
_log = structlog.get_logger()


class Containerd:
    def __init__(
        self,
        client: RuntimeClient,
        *,
        root: Path,
        clock: Callable[[], float] = since_boot,
    ) -> None:
        self._client = client
        self._root = root
        self._clock = clock
        self._listing: Listing | None = None
        self._held: Mapping[str, Holding | None] = {}
        self._handlers: dict[str, str] = {}
        self._config: RuntimeConfig | None = None

    async def config(self) -> RuntimeConfig:
        """The runtime's configuration, as far as it reports it."""
        with _asking():
            try:
                config = await self._client.config()
            except (PeerRefused, MessageWrong):
                config = RuntimeConfig()
        if config.may_restore and _has_criu(self._root):
            config = replace(config, restores=True)
        if config != self._config:
            self._config = config
            _log_config(config)
        return config

    async def listing(self, *, fresh: bool) -> Listing:
        """Containers that hold grants; reuses a recent listing unless `fresh`."""
        known, began_s = self._listing, self._clock()
        if known is not None and not fresh and known.began_s > began_s - _MAX_AGE_S:
            return known
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

    def last(self) -> Listing:
        """The last listing, however old; an empty one before the first."""
        return self._listing or Listing(began_s=0.0, containers=())

    async def handler(self, sandbox_id: str) -> str:
        """The runtime handler of a sandbox; empty for the default one."""
        if sandbox_id not in self._handlers:
            with _asking():
                sandbox = await self._client.sandbox(sandbox_id)
            if sandbox is None:
                raise NodeNotReady(
                    "partage: the container runtime does not know this pod's sandbox; kubelet tries again"
                )
            if len(self._handlers) >= _MOST_HANDLERS:
                del self._handlers[next(iter(self._handlers))]
            self._handlers[sandbox_id] = sandbox.runtime_handler
        return self._handlers[sandbox_id]

    async def living(self, sandbox_id: str) -> tuple[ListedContainer, ...]:
        """The containers of a sandbox that have not ended."""
        containers = await self._containers()
        return tuple(each for each in containers if each.sandbox_id == sandbox_id and not each.exited)

    async def capabilities(self, container: ListedContainer) -> frozenset[str]:
        """All capabilities that the container's processes may have."""
        with _asking():
            found = await self._client.capabilities(container.id)
        if found is None:
            raise NodeNotReady(
                "partage: the container runtime does not say what the other containers of this pod may do, and they "
                "share their processes with this one; do not share them, or ask for whole cards"
            )
        return found

    async def handler_of(self, key: ContainerKey) -> str:
        """The runtime handler of a container in the last listing; empty if it is not listed."""
        ids = {each.id for each in self.last().containers if each.held is not None and each.held.key == key}
        found = [each.sandbox_id for each in await self._containers() if each.id in ids]
        return await self.handler(found[0]) if found else ""

    def keys_of(self, container_id: str) -> frozenset[ContainerKey]:
        """The key of a container, if the last listing shows it with grants."""
        return frozenset(each.held.key for each in self.last().containers if each.id == container_id and each.held)

    async def pods(self) -> frozenset[str]:
        """The uids of all pods that have a sandbox."""
        with _asking():
            return frozenset(each.pod_uid for each in await self._client.sandboxes())

    async def _containers(self) -> tuple[ListedContainer, ...]:
        with _asking():
            return await self._client.containers()


def _held(container: ListedContainer) -> Holding | None:
    try:
        record = decode_container(container.annotations[CONTAINER], (GPU,))
    except DecodeError:
        return None
    return Holding.of(record, record.of(GPU), pod=container.pod_uid, container=container.name)


def _log_config(config: RuntimeConfig) -> None:
    default = config.default_handler
    if config.takes_our_specs is None or config.program_of("") is None:
        _log.warning(
            "the container runtime does not report its configuration; cards are attached without CDI and its default "
            "handler counts as NVIDIA's; is it containerd?",
            cdi=config.takes_our_specs,
            default_handler=default,
        )
        return
    _log.info(
        "container runtime configuration",
        cdi=config.takes_our_specs,
        default_handler=default,
        default_program=config.program_of(""),
    )


def _has_criu(root: Path) -> bool:
    """Whether the runtime would find CRIU; checked on every call, since it may be installed while the runtime runs."""
    return any((root / folder / "criu").exists() for folder in _PROGRAMS)


@contextmanager
def _asking() -> Generator[None]:
    try:
        yield
    except CriError:
        raise NodeNotReady(
            "partage: the container runtime does not answer crishim, so it is unknown what this node's cards carry; "
            "kubelet tries again"
        ) from None
