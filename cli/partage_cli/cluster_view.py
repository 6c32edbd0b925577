"""The cluster read once as a partage scheduler sees it: with its settings and plugins, and the cluster's keys."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from partage_base.keyring import LoadedKeys
from partage_base.kube import ApiServer
from partage_cli.keys.objects import KEYS
from partage_cli.schedulers import KnownScheduler, trusted_keys
from partage_plugins.api import Allocation
from partage_plugins.api.names import KeyId
from partage_plugins.registry.registry import Registry
from partage_scheduler.core import Core, new_core
from partage_scheduler.dry_run import look
from partage_scheduler.objects import ApiPod
from partage_scheduler.settings import SchedulerSettings
from partage_scheduler.signatures import Trust, as_written


@dataclass(frozen=True, kw_only=True)
class ClusterView:
    core: Core
    unchecked: str
    """A note that allocations without a verified signature were counted; empty if there were none."""


@asynccontextmanager
async def looking(
    server: ApiServer, scheduler: KnownScheduler, settings: SchedulerSettings, root: Path
) -> AsyncGenerator[ClusterView]:
    """Read the cluster once. Inside the context the plugins see the scheduler's variables. Raises `KubeError`."""
    keys = await trusted_keys(server, settings.namespace, root)
    with scheduler.plugins() as registry:
        reader = _AllocationReader(registry, keys)
        core = new_core(settings, registry, trusted=reader.allocation)
        await look(server, core, namespace=settings.namespace, claims=settings.claims)
        where = f"in ConfigMap {settings.namespace}/{KEYS} nor in {settings.below_root(settings.keys)}"
        words = f"allocations were taken as they are written: there is no public key {where}"
        yield ClusterView(core=core, unchecked=words if reader.has_unchecked else "")


class _AllocationReader:
    """Reads the allocations on pods; without any public key it takes them unverified."""

    def __init__(self, registry: Registry, keys: Mapping[KeyId, Ed25519PublicKey]) -> None:
        self._written = as_written(registry.kinds)
        self._trust = Trust(lambda: LoadedKeys(keys), registry.kinds) if keys else None
        self.has_unchecked = False

    def allocation(self, pod: ApiPod) -> Allocation | None:
        if self._trust is not None:
            return self._trust.trusted(pod)
        found = self._written(pod)
        self.has_unchecked |= found is not None
        return found
