"""Puts a crishim's judge together from its settings: who knows what, and where on the node it lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from partage_base.cri import CHECKPOINT, PodResources, RuntimeClient, UnaryClient
from partage_base.keyring import Keyring
from partage_crishim.collector import Collector
from partage_crishim.containerd import Containerd
from partage_crishim.files import NodeFiles
from partage_crishim.grants import GrantPolicy, GrantRewriter, default_roots
from partage_crishim.guardian import Guardian
from partage_crishim.inventory_file import InventoryFile
from partage_crishim.judge import ContainerChange, Incident, Judge
from partage_crishim.kubelet import Kubelet
from partage_crishim.ledger import CardLedger
from partage_crishim.plugins import MeasuredHost, host_settings
from partage_crishim.records import Records
from partage_crishim.reservations import Reservations
from partage_crishim.rules.confinement import Confinement
from partage_crishim.rules.guard import GuardPolicy
from partage_crishim.rules.placement import Roots
from partage_crishim.settings import CrishimSettings
from partage_crishim.siblings import Siblings
from partage_plugins.errors import PartageError
from partage_plugins.vocabulary import NodeName

OWN_FOLDER: Final = "run/partage/crishim"
"""Below the node's root; it outlives the process and not the boot."""
_log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a service runs."""

    judge: Judge
    ledger: CardLedger
    collector: Collector
    host: MeasuredHost
    keyring: Keyring
    reservations: Reservations
    records: Records
    clients: tuple[UnaryClient, ...]

    async def close(self) -> None:
        """Lets go of the connections to others."""
        for client in self.clients:
            client.close()


def assemble(  # noqa: PLR0913  those who hear of what happens
    settings: CrishimSettings,
    *,
    tell: Callable[[Incident], None],
    changed: Callable[[ContainerChange], None],
    took: Callable[[float], None],
    trouble: Callable[[PartageError | OSError], None],
    closed: str = "",
) -> Parts:
    """All parts, none of them started; `closed` says why none is to honour allocations.

    `tell` hears of refusals, `changed` of rewritten requests, `took` of the time that plugins take, `trouble` of what
    could not be cleaned up yet.
    """
    own = settings.root / OWN_FOLDER
    runtime = UnaryClient(settings.below_root(settings.runtime))
    resources = UnaryClient(settings.below_root(settings.pod_resources))
    containerd = Containerd(RuntimeClient(runtime))
    reservations, records = Reservations(own / "reserved"), Records(own / "records")
    ledger = CardLedger(reservations, records, containerd)
    inventory, keyring = InventoryFile(settings.root), Keyring(settings.below_root(settings.keys))
    kubelet = Kubelet(PodResources(resources), settings.root / CHECKPOINT)
    policy = grant_policy(settings)
    siblings = Siblings(containerd, ledger, policy.confinement)
    guardian = Guardian(
        policy=_guard_policy(settings),
        inventory=inventory,
        containerd=containerd,
        kubelet=kubelet,
        ledger=ledger,
        siblings=siblings,
    )
    host = MeasuredHost(host_settings(settings), took=took)
    collector = Collector(
        reservations=reservations, records=records, containerd=containerd, ledger=ledger, host=host, tell=trouble
    )
    grants = GrantRewriter(
        node=NodeName(settings.node_name),
        policy=policy,
        keyring=keyring,
        inventory=inventory,
        containerd=containerd,
        ledger=ledger,
        guardian=guardian,
        siblings=siblings,
        host=host,
        files=NodeFiles(),
        clean_up=collector.wake,
        closed=closed,
    )
    judge = Judge(grants, guardian, tell=tell, changed=changed)
    return Parts(
        judge=judge,
        ledger=ledger,
        collector=collector,
        host=host,
        keyring=keyring,
        reservations=reservations,
        records=records,
        clients=(runtime, resources),
    )


def _guard_policy(settings: CrishimSettings) -> GuardPolicy:
    return GuardPolicy(
        mode=settings.guard,
        trusted=frozenset(settings.trusted_namespaces),
        nvidia_handlers=frozenset(settings.nvidia_handlers),
        nvidia_is_default=settings.nvidia_is_default,
    )


def grant_policy(settings: CrishimSettings) -> GrantPolicy:
    """What the settings say of containers with grants."""
    return GrantPolicy(
        roots=_roots(settings),
        enforcement=settings.enforce,
        confinement=Confinement(
            allow_unconfined=settings.allow_unconfined,
            container_handlers=(*settings.container_handlers, *settings.nvidia_handlers),
            vm_handlers=settings.vm_handlers,
        ),
    )


def _roots(settings: CrishimSettings) -> Roots:
    try:
        return default_roots(settings.root, *map(settings.below_root, settings.mount_roots))
    except (OSError, RuntimeError) as error:  # links that lead in a circle; it costs who mounts from there
        _log.error("mount_roots can't be used, so only the usual folders are", why=str(error))
        return default_roots(settings.root)
