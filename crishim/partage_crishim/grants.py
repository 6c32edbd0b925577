"""Processes a container with a grant, from the allocation to the rewritten request: checks, plugins, rewrite.

A failure after the reservation releases the reservation. Plugins may have prepared something by then; that is on
record, and the collector notifies them.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from partage_base.cri import Changes, CreateRequest, rewritten
from partage_base.inventory_file import InventoryFile, NodeInventory
from partage_base.keyring import Keyring
from partage_crishim.containerd import Containerd
from partage_crishim.decisions import Ending, Rewrite
from partage_crishim.device_filter import DeviceFilter
from partage_crishim.kubelet import Kubelet
from partage_crishim.ledger import CardLedger
from partage_crishim.pid_namespace import PidNamespaceCheck
from partage_crishim.rules.allocation import Signatures, allocated_to, record_on, require_startable
from partage_crishim.rules.confinement import Confinement, is_fractional, require_confinable
from partage_crishim.rules.conversion import changes_of, runtime_of, security_of, shown
from partage_crishim.rules.errors import NodeNotReady
from partage_crishim.rules.holdings import Holding, require_cards, require_counted
from partage_crishim.rules.placement import PathTarget, Roots, require_apart, require_sources
from partage_plugins.api import GPU, Allocation, Container, ContainerAllocation, ContainerName, Granted, NodeName
from partage_plugins.api.allocation import Grants
from partage_plugins.api.keys import ALLOCATION, SIGNATURE
from partage_plugins.host import PluginHost
from partage_plugins.rules.enforcement import Enforcement, require_enforced


@dataclass(frozen=True, kw_only=True)
class GrantPolicy:
    """Operator settings for containers with grants."""

    roots: Roots
    enforcement: Enforcement = "strict"
    confinement: Confinement = field(default_factory=Confinement)
    closed: str = ""
    """Why no container gets its grant at present, as a sentence for users; normally empty."""


_OF_A_DRIVER: Final = ("usr", "lib", "lib64", "run/nvidia-persistenced")
"""Folders of a driver's libraries, programs and socket, relative to its installation root."""


def default_roots(root: Path, *more: Path, driver: Path | None = None) -> Roots:
    """The usual folders of drivers, libraries and the broker; links are resolved before paths are compared.

    If `driver` is given, the driver is installed in that folder, and only the driver's own folders are looked for
    there.
    """
    usual = [root / each for each in ("run/partage", "run/nvidia", "opt", *_OF_A_DRIVER)]
    devices = [root / each for each in ("dev", "run/nvidia/driver/dev")]
    if driver is not None:
        usual += [driver / each for each in _OF_A_DRIVER]
        devices.append(driver / "dev")
    return Roots(mounts=_resolved(*usual, *more), devices=_resolved(*devices))


def _resolved(*folders: Path) -> tuple[str, ...]:
    return tuple(sorted({str(folder.resolve()) for folder in folders}))


def target_of(path: str) -> PathTarget | None:
    """What a path, which plugins name as the runtime sees it, leads to on this node."""
    try:
        real = os.path.realpath(path, strict=True)
        mode = os.stat(real).st_mode  # noqa: PTH116  a path that was just resolved
    except (OSError, ValueError):
        return None
    return PathTarget(real, "device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "other")


@dataclass(frozen=True, kw_only=True)
class GrantRewriter:
    """All checks and steps for a grant: verification, accounting, confinement, plugins."""

    node: NodeName
    policy: GrantPolicy
    keyring: Keyring
    inventory: InventoryFile
    containerd: Containerd
    ledger: CardLedger
    device_filter: DeviceFilter
    pid_namespace: PidNamespaceCheck
    kubelet: Kubelet
    host: PluginHost
    took: Callable[[float], None]
    """Callback for the seconds that plugins took for a container."""
    signatures: Signatures = field(default_factory=Signatures)

    def allocated(self, request: CreateRequest) -> tuple[Allocation, Grants] | None:
        """The pod's allocation and this container's grants, if it has any; an unsigned one is not parsed."""
        text, signature = request.annotations.get(ALLOCATION), request.annotations.get(SIGNATURE)
        if text is None:
            return None
        self.signatures.require(text, signature, self.keyring.current().keys)
        return allocated_to(ContainerName(request.container), text)

    async def rewrite(self, message: bytes, request: CreateRequest, allocation: Allocation, grants: Grants) -> Rewrite:
        """The rewritten request; raises a refusal or a plugin's fault."""
        if self.policy.closed:
            raise NodeNotReady(self.policy.closed)
        require_startable(allocation, uid=request.uid, node=self.node)
        known = self.inventory.current()
        if known is None:
            raise NodeNotReady(
                "partage: this node's inventory is missing or cannot be read; is partage-advertiser running? "
                "kubelet tries again"
            )
        cards = allocation.given(ContainerName(request.container), GPU)
        record = record_on(request, allocation, grants)
        require_cards(cards, known.gpu)
        handler, config = await self.containerd.handler(request.sandbox_id), await self.containerd.config()
        require_counted(config)
        security = security_of(request, handler)
        default = config.default_handler
        require_confinable(security, cards, known.gpu, self.policy.confinement, default_handler=default)
        if request.pod_pid and is_fractional(cards, known.gpu):
            await self.pid_namespace.require_harmless(request)
        container = shown(request, record, security, runtime_of(config, handler), gang=allocation.gang)
        mine = Holding.of(record, cards, pod=request.uid, container=request.container)
        ended = await self.ledger.reserve(mine, known.gpu)
        try:
            await self.kubelet.require_ours(cards, known.gpu)
            changes = await self._changes(request, container, record, known)
            return Rewrite(rewritten(message, changes), ended=ended)
        except BaseException:
            ended(Ending.FAILED)
            raise

    async def _changes(
        self, request: CreateRequest, container: Container, record: ContainerAllocation, known: NodeInventory
    ) -> Changes:
        """The plugins' answer, checked, and the device filter's changes to everything else."""
        parts = {kind: known.parts[kind] for kind in record.grants if kind in known.parts}
        started = time.perf_counter()
        try:
            adjusted = await self.host.adjust(container, Granted(gen=record.gen, grants=record.grants, parts=parts))
        finally:
            self.took(time.perf_counter() - started)
        require_enforced(adjusted.unenforced, self.policy.enforcement)
        require_apart(request.mounts, adjusted.adjustment.places)
        require_sources(adjusted.adjustment, adjusted.owners, target_of, self.policy.roots)
        guard = await self.device_filter.changes(request, adjusted.adjustment.env)
        return changes_of(adjusted.adjustment, record, guard)
