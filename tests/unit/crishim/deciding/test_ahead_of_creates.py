"""What is done before a create comes makes it no different: the same answers, and nothing is left of a rehearsal."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_crishim.rehearsing import Rehearsal
from partage_crishim.verdicts import Ending
from partage_plugins.codecs import container_key
from partage_plugins.vocabulary import ContainerName, PodUid
from partage_plugins.vocabulary.keys import ALLOCATION
from unit.crishim.deciding.allocations import GIB, allocation, grant, inventory, signed
from unit.crishim.deciding.requests import Create
from unit.crishim.deciding.stage import Crishim, Stage
from unit.keyring.samples import write_public

OLD = Ed25519PrivateKey.from_private_bytes(b"o" * 32)
GOOD = signed(allocation())


def pod(uid: str, share: int = 100, gen: int = 1) -> Create:
    return Create(uid=uid, annotations=signed(allocation(grant(share=share, memory=GIB), pod=uid, gen=gen)))


def files(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_an_expected_pod_is_rewritten_as_any_other(stage: Stage, crishim: Crishim) -> None:
    assert crishim.grants.expect(GOOD) == 1
    assert crishim.rewrite(Create(annotations=GOOD)) == stage.crishim().rewrite(Create(annotations=GOOD, attempt=0))


def test_pods_without_an_allocation_are_not_expected(crishim: Crishim) -> None:
    assert crishim.grants.expect({"a": "b"}) == 0


@pytest.mark.parametrize("text", ["no JSON", GOOD[ALLOCATION].replace("500", "900")])
def test_what_would_be_refused_is_expected_without_a_word_and_refused_in_its_own(
    text: str, stage: Stage, crishim: Crishim
) -> None:
    annotations = GOOD | {ALLOCATION: text}
    assert crishim.grants.expect(annotations) == 0
    assert stage.told == []
    assert crishim.refusal(Create(annotations=annotations)) == stage.crishim().refusal(Create(annotations=annotations))
    assert stage.fake.asked == []


def test_an_annotation_that_was_edited_since_is_judged_as_it_is_now(crishim: Crishim) -> None:
    crishim.grants.expect(GOOD)
    edited = GOOD | {ALLOCATION: GOOD[ALLOCATION].replace("500", "900")}
    assert "does not match" in crishim.refusal(Create(annotations=edited))


def test_a_key_that_was_taken_away_since_counts_no_more_and_plugins_hear_of_it(stage: Stage, crishim: Crishim) -> None:
    file = write_public(stage.root / "etc/partage/keys.d", OLD)
    annotations = signed(allocation(), OLD)
    crishim.grants.expect(annotations)
    file.unlink()
    create = Create(annotations=annotations)
    assert "which this node does not trust" in crishim.refusal(create)
    crishim.collect()
    assert stage.fake.told == [container_key(PodUid(create.uid), ContainerName("main"), 0)] * len(stage.fake.asked)
    assert crishim.records.adjusted() == ()


def test_a_key_of_the_same_name_that_was_read_anew_is_asked_again(stage: Stage, crishim: Crishim) -> None:
    file = write_public(stage.root / "etc/partage/keys.d", OLD)
    annotations, content = signed(allocation(), OLD), file.read_bytes()
    crishim.grants.expect(annotations)
    file.unlink()
    crishim.refusal(Create(annotations=annotations))
    file.write_bytes(content)
    os.chmod(file, 0o644)  # noqa: PTH101  whatever the umask
    crishim.rewrite(Create(annotations=annotations))


def test_a_rehearsal_before_the_first_grant_does_nothing(stage: Stage, crishim: Crishim) -> None:
    before = files(stage.root)
    Rehearsal(crishim.grants)()
    assert files(stage.root) == before


def test_a_rehearsal_changes_nothing_and_asks_nobody(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a"))
    before, asked, listings = files(stage.root), len(stage.fake.asked), stage.runtime.listings
    for _ in range(3):
        Rehearsal(crishim.grants)()
    assert files(stage.root) == before
    assert (len(stage.fake.asked), stage.runtime.listings, stage.told) == (asked, listings, [])


def test_a_rehearsal_takes_out_what_a_newer_listing_shows(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a"))
    reserved = stage.root / "run/partage/crishim/reserved"
    assert [each for each in files(reserved) if "/." not in each]
    asyncio.run(crishim.grants.containerd.listing(fresh=True))
    Rehearsal(crishim.grants)()
    assert not [each for each in files(reserved) if "/." not in each]
    assert "has not enough compute left" in crishim.refusal(pod("b", share=950))


def test_a_rehearsal_of_what_would_be_refused_by_now_is_as_good(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a"))
    stage.write_inventory(inventory() | {"kinds": {}})
    Rehearsal(crishim.grants)()
    stage.no_inventory()
    Rehearsal(crishim.grants)()
    assert stage.told == []


def test_a_rehearsal_makes_no_difference_to_who_gets_what_is_left(stage: Stage, crishim: Crishim) -> None:
    rehearse = Rehearsal(crishim.grants)
    for uid in ("a", "b"):
        crishim.rewrite(pod(uid, share=500))
        rehearse()
    assert "has not enough compute left" in crishim.refusal(pod("c", share=100))
    crishim.held_back(pod("a", share=400, gen=2)).ended(Ending.FAILED)
    rehearse()
    assert "is older than one that was in force" in crishim.refusal(pod("a", share=500))


def test_plugins_look_ahead_at_what_was_signed_for_the_pod_that_is_expected(stage: Stage, crishim: Crishim) -> None:
    asyncio.run(crishim.grants.look_ahead())
    assert stage.fake.expecting == []
    crishim.grants.expect(GOOD)
    asyncio.run(crishim.grants.look_ahead())
    crishim.rewrite(Create(annotations=GOOD))
    assert stage.fake.expecting == [granted for _, granted in stage.fake.asked]


def test_plugins_do_not_look_ahead_for_what_nobody_signed_nor_without_an_inventory(
    stage: Stage, crishim: Crishim
) -> None:
    crishim.grants.expect(GOOD | {ALLOCATION: GOOD[ALLOCATION].replace("500", "900")})
    asyncio.run(crishim.grants.look_ahead())
    crishim.grants.expect(GOOD)
    stage.no_inventory()
    asyncio.run(crishim.grants.look_ahead())
    assert stage.fake.expecting == []
