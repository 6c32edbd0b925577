"""Claims are prepared, released and ended: with their last container, and not before they are released."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from partage_isolation.errors import SpecRefused
from partage_isolation.names import own_budget
from partage_isolation.store.folders import CLAIMS_INSIDE, INSIDE, LIBRARY, OBJECTS, PARENT, SOCKET
from partage_isolation.store.specs import FOLDER
from partage_isolation.wire.messages import Prepare
from partage_plugins.api.claims import ClaimUid, claim_key
from partage_plugins.api.containers import Mount
from partage_plugins.api.gpu import GpuGrant
from partage_plugins.api.names import ContainerKey, ContainerName
from support.broker import CARD, pod
from unit.isolation.containers.site import Site

GIB = 1 << 30
UID = ClaimUid(pod().uid)
KEY = claim_key(UID)


def asked(*, key: ContainerKey = KEY, is_claim: bool = True) -> Prepare:
    grant = GpuGrant(card=CARD, share_milli=300, limit_milli=700, memory_bytes=GIB)
    return Prepare(key=key, pod=pod(), container=ContainerName("claim"), gen=1, grants=(grant,), is_claim=is_claim)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path) as site:
        yield site


def is_kept(site: Site) -> bool:
    (facts,) = site.containers.facts()
    return facts.is_claim and facts.is_kept


async def test_its_folder_is_below_its_uid_and_each_file_of_the_library_at_its_path(site: Site) -> None:
    prepared = site.containers.prepare(asked())
    places = {mount.container_path: mount for mount in prepared.mounts}
    folder = str(site.root / PARENT / KEY)
    assert prepared.is_claim
    assert places[f"{CLAIMS_INSIDE}/{UID}"] == Mount(container_path=f"{CLAIMS_INSIDE}/{UID}", host_path=folder)
    assert {f"{INSIDE}/{LIBRARY}/{name}" for name in OBJECTS} <= places.keys()
    assert INSIDE not in places
    assert (Path(folder) / SOCKET).is_socket()


async def test_it_stays_until_it_is_released_whatever_is_listed(site: Site) -> None:
    site.containers.prepare(asked())
    assert not site.containers.end(KEY, set())
    assert is_kept(site)


async def test_it_ends_once_it_is_released_and_nobody_has_it(site: Site) -> None:
    site.containers.prepare(asked())
    site.containers.release(KEY)
    assert not is_kept(site)
    assert not site.containers.end(KEY, {KEY})
    assert site.containers.end(KEY, set())
    assert site.containers.facts() == ()
    assert site.folders == set()
    assert list((site.root / FOLDER).iterdir()) == []


async def test_a_living_process_keeps_it(site: Site) -> None:
    site.containers.prepare(asked())
    process = site.ledger.lives.begin(KEY, (7, 1), b"t" * 16)
    assert process is not None
    site.containers.release(KEY)
    assert not site.containers.end(KEY, set())
    site.ledger.lives.died(process, 5)
    assert site.containers.end(KEY, set())


async def test_one_that_is_prepared_again_is_kept_again(site: Site) -> None:
    site.containers.prepare(asked())
    site.containers.release(KEY)
    site.containers.prepare(asked())
    assert is_kept(site)
    assert not site.containers.end(KEY, set())


@pytest.mark.parametrize("released", [False, True])
async def test_a_broker_that_starts_again_knows_whether_it_was_released(tmp_path: Path, *, released: bool) -> None:
    with Site(tmp_path) as before:
        before.containers.prepare(asked())
        if released:
            before.containers.release(KEY)
    with Site(tmp_path) as after:
        assert after.containers.rebuild() == ()
        assert is_kept(after) is not released
        assert after.containers.end(KEY, set()) is released


async def test_what_nobody_knows_is_over(site: Site) -> None:
    site.containers.release(KEY)
    assert site.containers.end(KEY, set())


async def test_a_container_is_no_claim(site: Site) -> None:
    site.containers.prepare(asked(is_claim=False))
    with pytest.raises(SpecRefused, match="container"):
        site.containers.release(KEY)
    with pytest.raises(SpecRefused, match="container"):
        site.containers.prepare(asked())


async def test_it_is_a_budget_of_its_own(site: Site) -> None:
    site.containers.prepare(asked())
    assert site.ledger.containers[KEY].key == own_budget(KEY)


async def test_a_file_of_an_earlier_version_is_a_container_s(site: Site) -> None:
    site.containers.prepare(asked(is_claim=False))
    (path,) = (site.root / FOLDER).iterdir()
    written = msgspec.json.decode(path.read_bytes())
    del written["is_claim"], written["is_released"]
    path.write_bytes(msgspec.json.encode(written))
    with Site(site.root) as after:
        assert after.containers.rebuild() == ()
        assert [each.is_claim for each in after.containers.facts()] == [False]


@pytest.mark.parametrize("claim_is_first", [True, False])
async def test_a_card_that_changes_its_pool_has_to_be_empty_between_two_allocators(
    site: Site, *, claim_is_first: bool
) -> None:
    share = asked(key=ContainerKey("team-a.share.main"), is_claim=False)
    first, second = (asked(), share) if claim_is_first else (share, asked())
    site.containers.prepare(first)
    with pytest.raises(SpecRefused, match="changed its pool"):
        site.containers.prepare(second)
    site.containers.prepare(first)
    site.containers.forget(first.key)
    site.containers.prepare(second)


async def test_a_grant_for_another_engine_lies_beside_pods(site: Site) -> None:
    site.containers.prepare(asked(key=ContainerKey("team-a.share.main"), is_claim=False))
    assert site.containers.prepare(msgspec.structs.replace(asked(), by_hook=True)).by_hook
