"""A container with a claim of our DRA driver starts where its limits can be enforced, and then as kubelet requested."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from partage_base.claim_records import ClaimRecords
from partage_crishim.decisions import RESTORE_POD, Refuse
from partage_crishim.rules.confinement import Confinement
from partage_crishim.rules.guard import GuardPolicy
from partage_plugins.api import CardId, GpuGrant, Namespace
from partage_plugins.api.claims import ClaimRecord, ClaimRef, ClaimUid, claim_device
from partage_plugins.api.places import CLAIMS_FOLDER
from support import wire
from unit.crishim.rules.allocations import CARD, GIB, allocation, grant, signed
from unit.crishim.rules.requests import POD_PIDS, TARGET_PIDS, Create
from unit.crishim.rules.stage import Crishim, Stage

UID, OTHER = ClaimUid("a671734a-e8e5"), ClaimUid("b671734a-e8e5")
OF_CARD = f"partage.dev/gpu={CARD}"
PART = GpuGrant(card=CardId(CARD), share_milli=300, limit_milli=1000, memory_bytes=GIB)
PLACES = ("/run/partage/claims/a671734a-e8e5", "/etc/ld.so.preload")
CLAIMING = Create(cdi=(claim_device(UID), OF_CARD))


def prepared(stage: Stage, uid: ClaimUid = UID, *, grants: tuple[GpuGrant, ...] = (PART,), **said: Any) -> None:
    claim, cdi = ClaimRef(Namespace("default"), "share", uid), (claim_device(uid), OF_CARD)
    record = ClaimRecord(claim=claim, devices=(), grants=grants, cdi=cdi, places=PLACES, **said)
    ClaimRecords(stage.root).write(record)


def test_as_it_was_prepared_it_passes_untouched(stage: Stage, crishim: Crishim) -> None:
    prepared(stage)
    crishim.passes(CLAIMING)


def test_so_it_does_while_it_is_let_go_of(stage: Stage, crishim: Crishim) -> None:
    prepared(stage, is_released=True)
    crishim.passes(CLAIMING)


@pytest.mark.parametrize("guard", ["on", "off"])
def test_what_was_not_prepared_here_is_refused(stage: Stage, guard: Any) -> None:
    stage.no_inventory()
    refusal = stage.crishim(guard=GuardPolicy(mode=guard)).refusal(CLAIMING)
    assert "is not prepared on this node; is partage-dra running there?" in refusal


def test_a_record_that_cannot_be_read_is_none(stage: Stage, crishim: Crishim) -> None:
    prepared(stage)
    path = stage.root / CLAIMS_FOLDER / f"{UID}.json"
    path.write_text("{")
    assert "is not prepared" in crishim.refusal(CLAIMING)
    path.unlink()
    path.mkdir()
    assert "is not prepared" in crishim.refusal(CLAIMING)


def test_a_device_of_ours_that_is_not_the_claim_s_is_refused(stage: Stage, crishim: Crishim) -> None:
    prepared(stage)
    assert "is not of claim share" in crishim.refusal(replace(CLAIMING, cdi=(*CLAIMING.cdi, "partage.dev/gpu=GPU-2")))


def test_devices_of_others_beside_it_are_theirs(stage: Stage, crishim: Crishim) -> None:
    prepared(stage)
    crishim.passes(replace(CLAIMING, cdi=(*CLAIMING.cdi, "example.com/nic=eth1")))


def test_two_claims_and_a_claim_beside_a_grant_are_refused(stage: Stage, crishim: Crishim) -> None:
    prepared(stage)
    prepared(stage, OTHER)
    assert "2 claims" in crishim.refusal(replace(CLAIMING, cdi=(claim_device(UID), claim_device(OTHER))))
    both = replace(CLAIMING, annotations=signed(allocation(grant())))
    assert "in one way" in crishim.refusal(both)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"privileged": True}, "a privileged container"),
        ({"capabilities": ("SYS_ADMIN",)}, "CAP_SYS_ADMIN"),
        ({"pids": 2}, "hostPID"),
        ({"pids": POD_PIDS}, "shares its processes"),
    ],
)
def test_part_of_a_card_needs_a_container_that_limits_hold(
    stage: Stage, crishim: Crishim, changed: dict[str, Any], why: str
) -> None:
    prepared(stage)
    assert why in crishim.refusal(replace(CLAIMING, **changed))
    prepared(stage, grants=())
    crishim.passes(replace(CLAIMING, **changed))


def test_an_operator_may_allow_it(stage: Stage) -> None:
    prepared(stage)
    crishim = stage.crishim(confinement=Confinement(allow_unconfined=True))
    crishim.passes(replace(CLAIMING, privileged=True))


@pytest.mark.parametrize("path", ["/run", "/run/partage/lib", "/var/run/partage/claims", "/etc/ld.so.preload", "/etc"])
def test_no_volume_meets_what_the_claim_brings(stage: Stage, crishim: Crishim, path: str) -> None:
    prepared(stage)
    assert "mount the volume elsewhere" in crishim.refusal(replace(CLAIMING, mounts=((path, "/srv/volume"),)))


def test_a_debugger_of_its_processes_is_refused_if_it_could_undo_limits(stage: Stage, crishim: Crishim) -> None:
    stage.runtime.devices["c-claiming"] = (claim_device(UID),)
    debugger = Create(container="debugger", pids=TARGET_PIDS, target="c-claiming")
    crishim.passes(debugger)
    assert "whose processes it would see" in crishim.refusal(replace(debugger, privileged=True))
    crishim.passes(replace(debugger, privileged=True, target="c-other"))


def test_a_pod_is_not_restored_from_a_checkpoint_where_a_container_of_it_names_one(crishim: Crishim) -> None:
    config = wire.field(17, wire.message((1, claim_device(UID))))
    decision = crishim.decision(wire.message((1, "/x"), (5, config)), RESTORE_POD)
    assert isinstance(decision, Refuse)
    assert "or a claim cannot be restored" in decision.sentence


def test_a_container_without_devices_of_ours_reads_nothing(stage: Stage, crishim: Crishim) -> None:
    (stage.root / CLAIMS_FOLDER).parent.mkdir(parents=True)
    (stage.root / CLAIMS_FOLDER).write_text("no folder")
    crishim.passes(Create(cdi=("example.com/nic=eth1",)))
    crishim.passes(Create())
