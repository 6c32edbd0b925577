"""Missing objects of a cluster are created, even if runs are killed midway or run concurrently."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime, timedelta

import pytest

from partage_base.keyring import KeyKept, KeyRefused
from partage_base.kube import ApiServer, Conflict, KubeError
from partage_cli.keys.certificates import AUTHORITY_LIFE, CA, CERTIFICATE, LIFE
from partage_cli.keys.objects import (
    AUTHORITY,
    CALLER_TLS,
    EXTENDER_CA,
    EXTENDER_TLS,
    KEYS,
    MANAGED_BY,
    SIGNING,
    Secret,
    signing_of,
)
from partage_cli.keys.provision import certificates_ensured, key_ensured, new_half, settled
from partage_cli.keys.store import KeyStore
from support.fake_api import Drop, FakeApi

SYSTEM = "partage-system"
SECRETS, CONFIG_MAPS = f"/api/v1/namespaces/{SYSTEM}/secrets", f"/api/v1/namespaces/{SYSTEM}/configmaps"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def store(server: ApiServer) -> KeyStore:
    return KeyStore(server, SYSTEM)


def files(api: FakeApi, secret: str) -> dict[str, bytes]:
    data = api.objects.get(f"{SECRETS}/{secret}")["data"]
    return {name: base64.b64decode(text) for name, text in data.items()}


def public(api: FakeApi) -> dict[str, str]:
    found: dict[str, str] = api.objects.get(f"{CONFIG_MAPS}/{KEYS}")["data"]
    return found


def signs(api: FakeApi) -> str | None:
    """The key with which a newly started scheduler would sign."""
    held = api.objects.select(SECRETS, {})
    named = [files(api, SIGNING).get("signing") for each in held if each["metadata"]["name"] == SIGNING]
    return named[0].decode().strip() if named and named[0] is not None else None


async def test_the_first_key_is_made_once_and_stays(api: FakeApi, store: KeyStore) -> None:
    key = await key_ensured(store)
    assert set(files(api, SIGNING)) == {f"{key}.key", "signing"}
    assert set(public(api)) == {f"{key}.pub"}
    assert signs(api) == key
    before = api.writes()
    assert await key_ensured(store) == key
    assert api.writes() == before


@pytest.mark.parametrize("after_success", [False, True])
@pytest.mark.parametrize("write", range(3))
async def test_a_run_that_ends_at_any_write_leaves_what_the_next_one_finishes(
    api: FakeApi, store: KeyStore, write: int, *, after_success: bool
) -> None:
    kinds = [("POST", SECRETS), ("POST", CONFIG_MAPS), ("PATCH", SECRETS)]
    method, under = kinds[write]
    api.expect(Drop(after_success=after_success), method=method, under=under)
    with pytest.raises(KubeError):
        await key_ensured(store)
    between = signs(api)
    assert between is None or f"{between}.pub" in public(api)
    halves = {name for each in api.objects.select(SECRETS, {}) for name in each["data"] if name.endswith(".key")}
    key = await key_ensured(store)
    assert halves <= {f"{key}.key"}
    assert signs(api) == key
    assert set(public(api)) == {f"{key}.pub"}


async def test_many_runs_at_once_make_one_key(api: FakeApi, store: KeyStore) -> None:
    keys = await asyncio.gather(*(key_ensured(store) for _ in range(8)))
    assert len(set(keys)) == 1
    assert set(public(api)) == {f"{keys[0]}.pub"}
    assert set(files(api, SIGNING)) == {f"{keys[0]}.key", "signing"}


async def test_nodes_get_the_public_half_of_a_key_that_people_made(api: FakeApi, store: KeyStore) -> None:
    half = new_half()
    (name,) = half
    data = {file: base64.b64encode(content).decode() for file, content in half.items()}
    marker = base64.b64encode(name.removesuffix(".key").encode()).decode()
    api.objects.create(SECRETS, {"metadata": {"name": SIGNING}, "data": {**data, "signing": marker}})
    api.objects.create(CONFIG_MAPS, {"metadata": {"name": KEYS}, "data": {"another.pub": "kept"}})
    assert f"{await key_ensured(store)}.key" == name
    assert set(public(api)) == {name.replace(".key", ".pub"), "another.pub"}


async def test_of_several_halves_none_is_chosen_by_chance(api: FakeApi, store: KeyStore) -> None:
    data = {name: base64.b64encode(text).decode() for half in (new_half(), new_half()) for name, text in half.items()}
    api.objects.create(SECRETS, {"metadata": {"name": SIGNING}, "data": data})
    with pytest.raises(KeyKept, match="names none that signs"):
        await key_ensured(store)
    assert signs(api) is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"a.key": b"garbage"}, "Secret/partage-signing/a.key: is not PEM"),
        ({"signing": b"0" * 16}, "names 0000000000000000, whose private half is not here"),
        ({"signing": b"x"}, "does not name a key"),
        ({"a.key": next(iter(new_half().values()))}, "a file is named after its key"),
    ],
)
def test_a_secret_that_is_wrong_is_left_and_told(data: dict[str, bytes], said: str) -> None:
    folded = {name: base64.b64encode(content).decode() for name, content in data.items()}
    with pytest.raises(KeyRefused, match=said):
        signing_of(Secret(data=folded))


async def test_certificates_are_made_once_and_of_one_authority(api: FakeApi, store: KeyStore) -> None:
    assert await certificates_ensured(store, NOW) == {EXTENDER_TLS: "made", CALLER_TLS: "made"}
    trusted = api.objects.get(f"{CONFIG_MAPS}/{EXTENDER_CA}")["data"][CA].encode()
    assert {files(api, name)[CA] for name in (EXTENDER_TLS, CALLER_TLS)} == {trusted}
    before = api.writes()
    assert await certificates_ensured(store, NOW) == {}
    assert api.writes() == before


async def test_certificates_are_renewed_in_time_by_the_same_authority(api: FakeApi, store: KeyStore) -> None:
    await certificates_ensured(store, NOW)
    authority, first = files(api, AUTHORITY), files(api, EXTENDER_TLS)
    later = NOW + LIFE * 0.7
    assert await certificates_ensured(store, later) == {
        EXTENDER_TLS: "made again: it ends on 2027-01-02",
        CALLER_TLS: "made again: it ends on 2027-01-02",
    }
    assert files(api, AUTHORITY) == authority
    assert files(api, EXTENDER_TLS)[CERTIFICATE] != first[CERTIFICATE]
    assert files(api, EXTENDER_TLS)[CA] == first[CA]


async def test_the_next_authority_is_trusted_before_it_signs(api: FakeApi, store: KeyStore) -> None:
    await certificates_ensured(store, NOW)
    late = NOW + AUTHORITY_LIFE - LIFE * 1.9
    await certificates_ensured(store, late)
    assert files(api, CALLER_TLS)[CA].count(b"BEGIN CERTIFICATE") == 2
    again = await certificates_ensured(store, late + timedelta(days=1))
    assert again == {}


async def test_certificates_survive_an_end_at_every_write(api: FakeApi, store: KeyStore) -> None:
    for after_success in (False, True, True, True):
        api.expect(Drop(after_success=after_success), method="POST")
        with pytest.raises(KubeError):
            await certificates_ensured(store, NOW)
    await certificates_ensured(store, NOW)
    trusted = api.objects.get(f"{CONFIG_MAPS}/{EXTENDER_CA}")["data"][CA].encode()
    assert {files(api, name)[CA] for name in (EXTENDER_TLS, CALLER_TLS)} == {trusted}
    assert await certificates_ensured(store, NOW) == {}


async def test_a_certificate_of_another_maker_is_left_alone(api: FakeApi, store: KeyStore) -> None:
    theirs = {"metadata": {"name": EXTENDER_TLS, "labels": {MANAGED_BY: "cert-manager"}}, "data": {}}
    api.objects.create(SECRETS, theirs)
    told = await certificates_ensured(store, NOW)
    assert told[EXTENDER_TLS].startswith("left as it is")
    assert files(api, EXTENDER_TLS) == {}


async def test_a_conflict_without_an_end_is_told(store: KeyStore) -> None:
    async def never() -> None:
        raise Conflict("PATCH /x", status=409)

    with pytest.raises(Conflict):
        await settled(never)
