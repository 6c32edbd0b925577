"""Records of prepared claims survive a round trip unchanged, and no other file is taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_base.claim_records import ClaimRecords
from partage_base.files import UNFINISHED
from partage_plugins.api import CardId, GpuGrant, Namespace
from partage_plugins.api.claims import (
    ClaimDevice,
    ClaimRecord,
    ClaimRef,
    ClaimUid,
    claim_device,
    claim_key,
    claimed_by,
)
from partage_plugins.api.places import CLAIMS_FOLDER
from partage_plugins.errors import DecodeError

UID = ClaimUid("a671734a-e8e5-11e4-8fde-42010af09327")
CARD = CardId("GPU-aaaaaaaa-0000-0000-0000-000000000000")
RECORD = ClaimRecord(
    claim=ClaimRef(Namespace("team-a"), "share", UID),
    devices=(ClaimDevice(request="gpu", pool="n1", device=CARD.lower(), card=CARD, share_id="5f0c"),),
    grants=(GpuGrant(card=CARD, share_milli=300, limit_milli=500, memory_bytes=1 << 30),),
    cdi=(claim_device(UID),),
)


@pytest.fixture
def records(tmp_path: Path) -> ClaimRecords:
    return ClaimRecords(tmp_path)


def test_a_record_is_read_as_it_was_written(records: ClaimRecords) -> None:
    assert records.of(UID) is None
    assert records.uids() == ()
    records.write(RECORD)
    assert records.of(UID) == RECORD
    assert records.uids() == (UID,)
    records.remove(UID)
    records.remove(UID)
    assert records.uids() == ()


def test_what_is_being_written_is_none_yet(records: ClaimRecords, tmp_path: Path) -> None:
    records.write(RECORD)
    (tmp_path / CLAIMS_FOLDER / f"{UNFINISHED}00.json").write_bytes(b"{")
    assert records.uids() == (UID,)


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"[]", b"\xff"])
def test_a_file_that_is_no_record_is_one_clear_error(records: ClaimRecords, tmp_path: Path, content: bytes) -> None:
    records.write(RECORD)
    (tmp_path / CLAIMS_FOLDER / f"{UID}.json").write_bytes(content)
    with pytest.raises(DecodeError):
        records.of(UID)


def test_a_record_of_another_claim_is_none_of_this(records: ClaimRecords, tmp_path: Path) -> None:
    records.write(RECORD)
    (tmp_path / CLAIMS_FOLDER / f"{UID}.json").rename(tmp_path / CLAIMS_FOLDER / "other.json")
    with pytest.raises(DecodeError, match="other"):
        records.of(ClaimUid("other"))


@pytest.mark.parametrize("uid", ["", "../x", ".", "a/b"])
def test_a_uid_leads_nowhere_else(records: ClaimRecords, uid: str) -> None:
    with pytest.raises(DecodeError):
        records.of(ClaimUid(uid))


def test_a_claim_is_known_by_its_device_and_by_no_other() -> None:
    assert claimed_by(claim_device(UID)) == UID
    assert claimed_by(f"partage.dev/gpu={CARD}") is None
    assert claimed_by("partage.dev/share") is None
    assert claimed_by("partage.dev/share=") is None
    assert len(claim_key(UID)) == 32
    assert claim_key(UID) != claim_key(ClaimUid("b"))
