"""Replaces the signing key of a cluster, and later retires the old one. Each step can be repeated.

First every node gets the new public half and reports it; then, in one write, the new key signs and the old private half
is removed. The old public half stays while pods exist whose allocation it verifies: their containers must be able to
restart.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

from partage_base.keyring import KeyKept, KeyUnknown
from partage_base.keyring.layout import MARKER
from partage_cli.keys.objects import KEYS, SIGNING, SINCE, Secret, Signing, private_file, public_file, signing_of
from partage_cli.keys.provision import new_half, settled
from partage_cli.keys.store import KeyStore
from partage_cli.keys.trust import Standing
from partage_cli.tables import few
from partage_plugins.api.names import KeyId

SETTLES_S: Final = 300.0
"""Time after a switch until every scheduler signs with the new key: kubelet takes up to two minutes."""


class Cluster(Protocol):
    """The state of keys on nodes and pods."""

    async def standing(self, key: KeyId) -> Standing: ...

    async def needing(self, key: KeyId) -> list[str]: ...


@dataclass(frozen=True)
class Rotated:
    old: KeyId
    new: KeyId


async def next_key(store: KeyStore) -> Rotated:
    """The next key, created unless one is waiting, with its public half where nodes get it."""
    return await settled(lambda: _next_key(store))


async def _next_key(store: KeyStore) -> Rotated:
    secret, signing, signs = await _signing(store)
    if not signing.waiting():
        secret = await store.change_secret(secret, new_half())
        signing = signing_of(secret)
    if len(waiting := signing.waiting()) > 1:
        raise KeyKept(f"Secret {SIGNING} has {len(waiting)} keys that wait: {few(waiting)}; take all but one out")
    await store.put_files(KEYS, signing.public_files())
    return Rotated(old=signs, new=waiting[0])


async def known_everywhere(cluster: Cluster, key: KeyId, *, wait: Callable[[Standing], Awaitable[bool]]) -> Standing:
    """Waits until every node in force trusts the key; raises `KeyKept` if `wait` gives up."""
    while (found := await cluster.standing(key)).lack:
        if not await wait(found):
            raise KeyKept(
                f"{len(found.lack)} nodes in force do not trust {key} yet: {few(found.lack)}; "
                "nothing signs with it; see `partage nodes -o wide`, copy keys.d there, and run this again"
            )
    return found


async def switched(store: KeyStore, rotated: Rotated, now_s: float) -> None:
    """Makes the new key sign and removes the old private half."""
    await settled(lambda: _switched(store, rotated, now_s))


async def _switched(store: KeyStore, rotated: Rotated, now_s: float) -> None:
    secret, signing, signs = await _signing(store)
    if signs == rotated.new:
        return
    if signs != rotated.old or rotated.new not in signing.private:
        raise KeyKept(f"the keys of Secret {SIGNING} were changed meanwhile: {signs} signs; look, and run this again")
    files = {MARKER: f"{rotated.new}\n".encode(), private_file(rotated.old): None}
    await store.change_secret(secret, files, annotations={SINCE: f"{now_s:.0f}"})


async def retired(store: KeyStore, cluster: Cluster, key: KeyId, *, force: bool, now_s: float) -> KeyId:
    """Removes the public half, so that nodes trust nothing that the key signed; returns the key that signs.

    Unless forced it refuses while that would prevent a container from starting.
    """
    secret, signing, signs = await _signing(store)
    if key == signs:
        raise KeyKept(f"{key} signs; `partage keys rotate` puts another in its place first")
    found = await store.config_map(KEYS)
    if found is None or public_file(key) not in (found.data or {}):
        raise KeyUnknown(f"ConfigMap {KEYS} has no key {key}; it has: {few(sorted((found and found.data) or {}))}")
    if not force:
        await _require_unneeded(cluster, key, signs, _since(secret), now_s)
    if key in signing.private:
        await store.change_secret(secret, {private_file(key): None})
    await store.take_file(KEYS, public_file(key))
    return signs


async def _require_unneeded(cluster: Cluster, key: KeyId, signs: KeyId, since_s: float, now_s: float) -> None:
    if now_s - since_s < SETTLES_S:
        left_s = SETTLES_S - (now_s - since_s)
        raise KeyKept(f"{signs} signs since a moment ago, and a scheduler may not know it yet; wait {left_s:.0f} s")
    if lack := (await cluster.standing(signs)).lack:
        raise KeyKept(
            f"{len(lack)} nodes in force do not trust {signs}, which signs now: {few(lack)}; "
            "see `partage nodes -o wide`, and copy keys.d there"
        )
    if pods := await cluster.needing(key):
        raise KeyKept(
            f"{len(pods)} pods have an allocation that {key} signed: {few(pods)}; "
            "their containers could not start again; wait until they have ended, or delete them"
        )


async def _signing(store: KeyStore) -> tuple[Secret, Signing, KeyId]:
    secret = await store.secret(SIGNING)
    signing = None if secret is None else signing_of(secret)
    if secret is None or signing is None or signing.signs is None:
        raise KeyUnknown(f"no key signs in this cluster: Secret {SIGNING} names none; `partage keys ensure` makes one")
    return secret, signing, signing.signs


def _since(secret: Secret) -> float:
    text = secret.metadata.annotations.get(SINCE, "")
    return float(text) if text.isdecimal() else 0.0
