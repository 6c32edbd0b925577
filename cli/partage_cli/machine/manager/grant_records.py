"""The grants of this machine, each a record and a CDI file below /run, counted among what is given of the cards.

A record is there before anything else of its grant, and the CDI file is last, without which no container has it. So
what a killed manager had begun is found, and what lacks its file is let go of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import structlog
from msgspec.structs import replace

from partage_base.claim_records import ClaimRecords
from partage_cli.machine.manager.admission import Admission
from partage_cli.machine.manager.errors import Objection
from partage_cli.machine.pods.options import CONTAINER
from partage_dra.spec_file import SpecFiles
from partage_isolation.wire.messages import ContainerTold
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary import GPU, Allocation, ContainerName, GpuGrant, Namespace, PodUid
from partage_plugins.vocabulary.claims import ClaimDevice, ClaimRecord, ClaimRef, ClaimUid, claim_device
from partage_plugins.vocabulary.names import NodeName

NAMESPACE: Final = Namespace("grants")
"""Under which people see them beside pods."""
LEAST_OF_UID: Final = 6
_CONTAINER: Final = ContainerName(CONTAINER)
_log = structlog.get_logger()


class GrantRecords:
    """Everything here that writes may raise `OSError`."""

    def __init__(self, node: NodeName, root: Path, admission: Admission) -> None:
        self._node, self._admission = node, admission
        self._records, self._specs = ClaimRecords(root), SpecFiles(root)

    def take_over(self) -> None:
        """What an earlier manager left."""
        found = self.standing()
        for record in found:
            self._admission.hold(self._allocation(record))
            if not record.is_released and not self._specs.has(record.claim.uid):
                self._records.write(replace(record, is_released=True))
        self._specs.keep_only({record.claim.uid for record in found if not record.is_released})

    def standing(self) -> tuple[ClaimRecord, ...]:
        return tuple(record for uid in self._records.uids() if (record := self._read(uid)) is not None)

    def named(self, name: str) -> ClaimRecord:
        """By its name, or the beginning of its uid. Raises `Objection`."""
        found = self.standing()
        named = [each for each in found if each.claim.name == name]
        begins = [each for each in found if len(name) >= LEAST_OF_UID and each.claim.uid.startswith(name)]
        if len(named or begins) != 1:
            many = f"{len(begins)} grants have a uid that begins with" if begins else "there is no grant"
            raise Objection("unknown-name", f"{many} {name}; `partage grants` shows all")
        return (named or begins)[0]

    def require_free(self, name: str) -> None:
        """Raises `Objection` where another one has it."""
        if any(record.claim.name == name for record in self.standing()):
            raise Objection("name-taken", f"there is a grant {name} already; `partage revoke {name}` ends it")

    def add(self, name: str, allocation: Allocation) -> ClaimRecord:
        """Of what is counted already; no container has it yet."""
        claim = ClaimRef(NAMESPACE, name, ClaimUid(allocation.pod))
        record = self._record(claim, allocation.given(_CONTAINER, GPU))
        self._records.write(record)
        return record

    def offer(self, record: ClaimRecord, document: Mapping[str, Any]) -> None:
        """Containers can have it from now on."""
        self._specs.put(record.claim.uid, document)

    def let_go(self, record: ClaimRecord) -> ClaimRecord:
        """No other container gets it; it counts until it ends."""
        released = replace(record, is_released=True)
        self._specs.remove(record.claim.uid)
        self._records.write(released)
        return released

    def end(self, record: ClaimRecord) -> None:
        """Nothing of it is in force any more."""
        uid = record.claim.uid
        self._specs.remove(uid)
        self._records.remove(uid)
        self._admission.release(PodUid(uid))
        _log.info("a grant has ended", grant=record.claim.name, uid=uid)

    def write_down(self, told: ContainerTold) -> None:
        """One that the broker has, and that has no record: no other container gets it."""
        grants = (
            GpuGrant(
                card=card.card,
                share_milli=card.granted_share_milli,
                limit_milli=card.granted_limit_milli,
                memory_bytes=card.granted_bytes,
            )
            for card in told.cards
        )
        record = self.let_go(self._record(ClaimRef(NAMESPACE, told.pod.name, ClaimUid(told.pod.uid)), grants))
        self._admission.hold(self._allocation(record))

    def _read(self, uid: ClaimUid) -> ClaimRecord | None:
        """A record that can't be read is none: it is made again of what the broker has."""
        try:
            record = self._records.of(uid)
        except DecodeError as error:
            _log.error("a record of a grant can't be read; it is made again", why=str(error))
            return None
        return record if record is not None and record.claim.namespace == NAMESPACE else None

    def _record(self, claim: ClaimRef, grants: Iterable[GpuGrant]) -> ClaimRecord:
        given = tuple(grants)
        devices = tuple(
            ClaimDevice(request="grant", pool=self._node, device=each.card, card=each.card) for each in given
        )
        return ClaimRecord(claim=claim, devices=devices, grants=given, cdi=(claim_device(claim.uid),))

    def _allocation(self, record: ClaimRecord) -> Allocation:
        containers = {_CONTAINER: {GPU.name: record.grants}}
        return Allocation(gen=1, pod=PodUid(record.claim.uid), node=self._node, containers=containers)
