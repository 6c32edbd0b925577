"""Wires admission and its dependencies together, over a runtime, a kubelet and plugins that tests can replace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from partage_base.claim_records import ClaimRecords
from partage_base.cri import PodResources, RuntimeClient
from partage_base.inventory_file import InventoryFile
from partage_base.keyring import Keyring
from partage_crishim.admission import Admission, AuditEvent
from partage_crishim.claims import ClaimGate
from partage_crishim.collector import Collector
from partage_crishim.containerd import Containerd
from partage_crishim.device_filter import DeviceFilter
from partage_crishim.grants import GrantPolicy, GrantRewriter, default_roots
from partage_crishim.kubelet import Kubelet
from partage_crishim.ledger import CardLedger
from partage_crishim.pid_namespace import PidNamespaceCheck
from partage_crishim.records import Records
from partage_crishim.reservations import Reservations, since_boot
from partage_crishim.resizes import Resizes
from partage_crishim.rules.confinement import Confinement
from partage_crishim.rules.guard import GuardPolicy
from partage_crishim.settings import CrishimSettings
from partage_crishim.suspensions import SuspensionFile
from partage_plugins.api import NodeName
from partage_plugins.errors import PartageError
from partage_plugins.host import PluginHost

OWN_FOLDER: Final = "run/partage/crishim"
"""Relative to the node's root; it survives a restart of the process but not a reboot."""
_log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class Policy:
    guard: GuardPolicy
    grants: GrantPolicy

    @classmethod
    def of(cls, settings: CrishimSettings, *, closed: str = "") -> Policy:
        guard = GuardPolicy(
            mode=settings.guard,
            trusted=settings.trusted,
            nvidia_handlers=frozenset(settings.nvidia_handlers),
        )
        confinement = Confinement(
            allow_unconfined=settings.allow_unconfined,
            container_handlers=(*settings.container_handlers, *settings.nvidia_handlers),
            vm_handlers=settings.vm_handlers,
        )
        driver = settings.below_root(settings.driver_root)
        try:
            roots = default_roots(settings.root, *map(settings.below_root, settings.mount_roots), driver=driver)
        except (OSError, RuntimeError) as error:  # e.g. a symlink loop; only mounts from there are refused
            _log.error("mount_roots cannot be used, falling back to the usual folders", why=str(error))
            roots = default_roots(settings.root, driver=driver)
        grants = GrantPolicy(roots=roots, enforcement=settings.enforce, confinement=confinement, closed=closed)
        return cls(guard=guard, grants=grants)


class Parts:
    """All components; constructing them starts nothing."""

    def __init__(  # noqa: PLR0913  the borders of the node, each by its name
        self,
        root: Path,
        node: NodeName,
        policy: Policy,
        *,
        keys: Path,
        runtime: RuntimeClient,
        resources: PodResources,
        host: PluginHost,
        tell: Callable[[AuditEvent], None],
        took: Callable[[float], None],
        trouble: Callable[[PartageError | OSError], None],
        clock: Callable[[], float] = since_boot,
    ) -> None:
        """`tell` gets audit events, `took` the seconds that plugins took, `trouble` errors of work that is retried."""
        own = root / OWN_FOLDER
        self.inventory, self.keyring = InventoryFile(root), Keyring(keys)
        self.containerd = Containerd(runtime, root=root, clock=clock)
        self.reservations, self.records = Reservations(own / "reserved", clock=clock), Records(own / "records")
        kubelet = Kubelet(resources, root)
        self.ledger = CardLedger(self.reservations, self.records, self.containerd)
        self.collector = Collector(
            reservations=self.reservations,
            records=self.records,
            containerd=self.containerd,
            ledger=self.ledger,
            host=host,
            tell=trouble,
        )
        pid_namespace = PidNamespaceCheck(self.containerd, self.ledger, policy.grants.confinement)
        self.device_filter = DeviceFilter(
            policy=policy.guard,
            inventory=self.inventory,
            containerd=self.containerd,
            kubelet=kubelet,
            ledger=self.ledger,
            pid_namespace=pid_namespace,
        )
        grants = GrantRewriter(
            node=node,
            policy=policy.grants,
            keyring=self.keyring,
            inventory=self.inventory,
            containerd=self.containerd,
            ledger=self.ledger,
            device_filter=self.device_filter,
            pid_namespace=pid_namespace,
            kubelet=kubelet,
            host=host,
            took=took,
        )
        self.resizes = Resizes(root=root, grants=grants, suspensions=SuspensionFile(root), tell=trouble)
        claims = ClaimGate(
            records=ClaimRecords(root),
            inventory=self.inventory,
            containerd=self.containerd,
            runtime=runtime,
            confinement=policy.grants.confinement,
        )
        self.admission = Admission(grants, self.device_filter, claims, tell)
