"""Puts newer allocations in force in running containers: those that the advertiser handed over and that verify.

An allocation that suspends its pod is in force once no container of the pod has anything on its cards; `suspensions`
reports it.

Each file holds what is on a pod. The text is trusted only by its signature, for this node, the pod of its file name,
and a `gen` higher than any that was in force. It is counted before it is put in force, so a crash in between leaves too
much counted and nothing given twice. Failures are retried for as long as the file exists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
import structlog

from partage_base.inventory_file import NodeInventory
from partage_crishim.grants import GrantRewriter
from partage_crishim.rules.conversion import runtime_of
from partage_crishim.rules.errors import AllocationRefused, NodeNotReady
from partage_crishim.rules.holdings import Holding
from partage_crishim.suspensions import SuspensionFile
from partage_plugins.api import GPU, Allocation, Container, ContainerName, Granted, Kind, Promise, Security
from partage_plugins.api.places import RESIZES_FOLDER
from partage_plugins.codecs import decode_allocation, decode_raw_grants
from partage_plugins.codecs.resize import MOST_FILE_BYTES, NewAllocation
from partage_plugins.errors import PartageError, Refused
from partage_plugins.rules.enforcement import require_enforced

EVERY_S: Final = 1.0
_MOST_FILES: Final = 1024
_SUSPENDED: Final[Promise] = "suspended"
_log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class Resizes:
    root: Path
    grants: GrantRewriter
    suspensions: SuspensionFile
    tell: Callable[[PartageError | OSError], None]

    async def run(self) -> None:
        """Run passes until cancelled."""
        while True:
            await self.once()
            await asyncio.sleep(EVERY_S)

    async def once(self) -> None:
        """Check each file; cheap if all are in force."""
        if self.grants.policy.closed:
            return
        paths = tuple(islice(sorted((self.root / RESIZES_FOLDER).glob("*.json")), _MOST_FILES))
        self.suspensions.keep({path.stem for path in paths})
        for path in paths:
            try:
                await self._file(path)
            except (PartageError, OSError) as error:
                self.tell(error)
        try:
            self.suspensions.write()
        except OSError as error:
            self.tell(error)

    async def _file(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                handed = msgspec.json.decode(file.read(MOST_FILE_BYTES), type=NewAllocation)
        except FileNotFoundError:  # its pod was just removed
            return
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise AllocationRefused(f"partage: {path} can't be read: {error}; remove it") from None
        self.grants.signatures.require(handed.allocation, handed.signature, self.grants.keyring.current().keys)
        allocation = decode_allocation(handed.allocation, (GPU,))
        if (allocation.pod, allocation.node, path.stem) != (handed.pod.uid, self.grants.node, handed.pod.uid):
            raise AllocationRefused(f"partage: {path} has an allocation for another pod or node; remove it")
        known = self.grants.inventory.current()
        if known is None:
            raise NodeNotReady("partage: this node's inventory is missing, so who is resized waits")
        if allocation.suspended is None:
            self.suspensions.forget(allocation.pod)
            for held in await self.grants.ledger.regrant(allocation, known.gpu):
                await self._in_force(handed, allocation, held, known.parts)
        elif not self.suspensions.is_refused(allocation):
            await self._suspend(handed, allocation, known)

    async def _suspend(self, handed: NewAllocation, allocation: Allocation, known: NodeInventory) -> None:
        """Suspend all containers; a refusal for one is the answer for the pod, until another allocation comes."""
        left = 0
        for held in await self.grants.ledger.regrant(allocation, known.gpu):
            try:
                left += not await self._in_force(handed, allocation, held, known.parts)
            except NodeNotReady:
                raise
            except Refused as error:
                self.suspensions.put(allocation, why=str(error))
                raise
        self.suspensions.put(allocation, is_done=not left)

    async def _in_force(
        self, handed: NewAllocation, allocation: Allocation, held: Holding, known: Mapping[Kind, object]
    ) -> bool:
        """Whether it is in force in this container now; False: it is being suspended."""
        name = ContainerName(held.container)
        grants = decode_raw_grants(handed.allocation)[name]
        parts = {kind: known[kind] for kind in grants if kind in known}
        config, handler = await self.grants.containerd.config(), await self.grants.containerd.handler_of(held.key)
        container = Container(
            key=held.key,
            pod=handed.pod,
            name=name,
            security=Security(runtime_handler=handler),
            runtime=runtime_of(config, handler),
            budgets=allocation.budgets_of(name),
            gang=allocation.gang,
        )
        async with self.grants.ledger.alone_with(held.key):
            is_on = self.grants.ledger.suspends(allocation)
            granted = Granted(gen=allocation.gen, grants=grants, parts=parts, suspended=is_on)
            adjusted = await self.grants.host.adjust(container, granted)
            if is_on and _SUSPENDED not in adjusted.adjustment.enforces.get(GPU.name, ()):
                return False
            require_enforced(adjusted.unenforced, self.grants.policy.enforcement)
            await self.grants.ledger.regranted(allocation, held)
        pod = f"{handed.pod.namespace}/{handed.pod.name}"
        what = "resized" if is_on is None else "suspended" if is_on else "resumed"
        _log.info(what, pod=pod, container=held.container, gen=allocation.gen)
        return True
