"""All sources agree about a node's claims; each disagreement is described."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from partage_base.claim_records import ClaimRecords
from partage_cli.audit.observation import SeenClaims, SeenCluster, SeenHere
from partage_cli.audit.of_claims import claims
from partage_cli.audit.of_node import broker
from partage_cli.audit.sources import here
from partage_cli.doctor.findings import Severity
from partage_cli.doctor.local_node import Unseen
from partage_dra.spec_file import SpecFiles
from partage_isolation.wire.messages import BrokerReport, CardHeld, ContainerReport
from partage_plugins.api import GPU, Adjustment, ContainerName, Namespace, PodName, PodRef, PodUid
from partage_plugins.api.claims import ClaimDevice, ClaimRecord, ClaimRef, ClaimUid, claim_device, claim_key
from partage_plugins.api.gpu import GpuGrant
from support.broker import CARD, GIB

UID = ClaimUid("5f0c")


def record(uid: ClaimUid = UID, share: int = 300) -> ClaimRecord:
    return ClaimRecord(
        claim=ClaimRef(Namespace("team-a"), f"share-{uid}", uid),
        devices=(ClaimDevice(request="gpu", pool="m", device="gpu-0", card=CARD),),
        grants=(GpuGrant(card=CARD, share_milli=share, limit_milli=1000, memory_bytes=GIB),),
        cdi=(claim_device(uid),),
    )


def limits(granted: int = GIB, uid: ClaimUid = UID, *, is_claim: bool = True) -> ContainerReport:
    pod = PodRef(namespace=Namespace("team-a"), name=PodName("share"), uid=PodUid(uid))
    held = CardHeld(card=CARD, granted_bytes=granted, limit_bytes=granted, charged_bytes=0)
    return ContainerReport(
        key=claim_key(uid), pod=pod, container=ContainerName("claim"), gen=1, cards=(held,), is_claim=is_claim
    )


def seen(*records: ClaimRecord, told: tuple[ContainerReport, ...] | None = None, **given: Any) -> SeenHere:
    known: dict[str, Any] = {"records": records, "files": frozenset(each.claim.uid for each in records)}
    answer = BrokerReport(broker="0.1.0", containers=tuple(limits(uid=each.claim.uid) for each in records))
    return SeenHere(
        name="m",
        inventory=Unseen(Path("i"), "is not there"),
        containers=(),
        broker=answer if told is None else BrokerReport(broker="0.1.0", containers=told),
        claims=SeenClaims(**{**known, **given}),
    )


def test_where_all_agree_that_is_said_and_where_there_are_none_nothing() -> None:
    (finding,) = claims(seen(record()), frozenset([UID]))
    assert (finding.status, finding.found) == (Severity.OK, "1 claims are in force as they were allocated")
    assert not list(claims(seen(), frozenset()))


def test_what_could_not_be_seen_is_said() -> None:
    away = replace_broker(seen(record()))
    (finding,) = claims(away, None)
    assert finding.found.endswith("as far as can be seen without the broker and the API server")


def replace_broker(here: SeenHere) -> SeenHere:
    return SeenHere(
        name=here.name,
        inventory=here.inventory,
        containers=here.containers,
        broker=Unseen(Path("b"), "is away"),
        claims=here.claims,
    )


@pytest.mark.parametrize(
    ("here_", "allocated", "words"),
    [
        (seen(record(), files=frozenset()), {UID}, "has no CDI file"),
        (seen(files=frozenset([UID])), set(), "there is a CDI file of claim 5f0c, which is not prepared"),
        (seen(record(), told=()), {UID}, "has part of a card, and no limits"),
        (seen(record(), told=(limits(2 * GIB),)), {UID}, "for the broker"),
        (seen(told=(limits(),)), set(), "the broker has limits for claim share, which is not prepared"),
        (seen(record()), set(), "is in force, and allocated to nobody any more"),
        (seen(unread=("the record of claim 5f0c: no JSON",)), {UID}, "the record of claim 5f0c"),
    ],
)
def test_each_disagreement_has_words(here_: SeenHere, allocated: set[ClaimUid], words: str) -> None:
    (finding,) = claims(here_, frozenset(allocated))
    assert words in finding.found
    assert finding.status in {Severity.WRONG, Severity.WARNING}
    assert finding.advice


def test_more_of_a_card_than_there_is_is_wrong() -> None:
    other = ClaimUid("77aa")
    (finding,) = claims(seen(record(share=700), record(other, 700)), frozenset([UID, other]))
    assert finding.found == f"claims on card {CARD} have 1400 milli of 1000 together"


def test_what_was_let_go_of_and_is_still_used_is_as_it_must_be() -> None:
    (finding,) = claims(seen(replace(record(), is_released=True)), frozenset())
    assert finding.status is Severity.OK


def test_limits_of_a_claim_are_none_of_a_container_that_is_missing() -> None:
    (finding,) = broker(seen(record()), SeenCluster(pods=(), nodes={}), (GPU,))
    assert finding.found == "limits of 0 containers, as crishim gave them"


def test_it_reads_what_the_driver_wrote(tmp_path: Path) -> None:
    ClaimRecords(tmp_path).write(record())
    SpecFiles(tmp_path).write(UID, Adjustment())
    ClaimRecords(tmp_path).write(record(ClaimUid("77aa")))
    (tmp_path / "run/partage/dra/claims/77aa.json").write_text("{")
    found = here(tmp_path, "m", tmp_path / "containerd.sock").claims
    assert isinstance(found, SeenClaims)
    assert (found.records, found.files) == ((record(),), frozenset([UID]))
    (why,) = found.unread
    assert why.startswith("the record of claim 77aa: ")
