"""Creates in a cluster what is missing: the first key, and the extender's certificates. Concurrent runs are safe.

The private half is written first, not yet marked as the one that signs: the run that creates the Secret decides which
key it is, so concurrent runs make only one. Then its public half is written where nodes get it, and only then is it
marked. A scheduler that starts in between finds no signing key, and restarts; none ever signs with a key that nodes
can't get. A run that dies between two writes leaves a state that the next one completes.

A certificate, its key and its CA are in one object, so they always match.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring import KeyKept
from partage_base.keyring.layout import MARKER
from partage_base.keyring.pem import encode_private
from partage_base.kube import Conflict
from partage_cli.keys.certificates import (
    CA,
    CERTIFICATE,
    KEY,
    Pair,
    Subject,
    authorities_in,
    authority_files,
    bundle,
    issued,
    needs_another,
    new_authority,
    why_renew,
)
from partage_cli.keys.objects import (
    AUTHORITY,
    CALLER_TLS,
    EXTENDER_CA,
    EXTENDER_TLS,
    KEYS,
    SIGNING,
    Secret,
    private_file,
    signing_of,
)
from partage_cli.keys.store import TLS, KeyStore
from partage_plugins.api.names import KeyId
from partage_plugins.codecs.signature import key_id

T = TypeVar("T")
TRIES: Final = 5
CALLER: Final = "system:kube-scheduler"


async def settled(work: Callable[[], Awaitable[T]]) -> T:
    """Runs `work`, and again if another run changed its objects meanwhile."""
    for _ in range(TRIES - 1):
        try:
            return await work()
        except Conflict:
            continue
    return await work()


async def key_ensured(store: KeyStore) -> KeyId:
    """The key that signs; raises `KeyringError` and `KubeError`."""
    return await settled(lambda: _key_ensured(store))


async def _key_ensured(store: KeyStore) -> KeyId:
    secret = await store.secret(SIGNING)
    if secret is None:
        secret = await store.make_secret(SIGNING, new_half())
    signing = signing_of(secret)
    if not signing.private:
        secret = await store.change_secret(secret, new_half())
        signing = signing_of(secret)
    if signing.signs is None and len(signing.private) > 1:
        raise KeyKept(
            f"Secret {SIGNING} has {len(signing.private)} private halves and names none that signs; "
            f"write the id of one of them into its `{MARKER}`: {', '.join(sorted(signing.private))}"
        )
    await store.put_files(KEYS, signing.public_files())
    if signing.signs is not None:
        return signing.signs
    (only,) = signing.private
    await store.change_secret(secret, {MARKER: f"{only}\n".encode()})
    return only


def new_half() -> dict[str, bytes]:
    """The file of a new private half."""
    private = Ed25519PrivateKey.generate()
    return {private_file(key_id(private.public_key())): encode_private(private)}


async def certificates_ensured(store: KeyStore, now: datetime) -> dict[str, str]:
    """Why each Secret was written or left alone, by name; empty if all are valid."""
    return await settled(lambda: _certificates_ensured(store, now))


def subjects(namespace: str) -> dict[str, Subject]:
    """The certificates' subjects, by the Secret that holds them."""
    service = f"partage-extender.{namespace}.svc"
    return {
        EXTENDER_TLS: Subject(service, names=(service, f"{service}.cluster.local")),
        CALLER_TLS: Subject(CALLER),
    }


async def _certificates_ensured(store: KeyStore, now: datetime) -> dict[str, str]:
    authorities = await _authorities(store, now)
    trusted = bundle(authorities, now)
    await store.put_files(EXTENDER_CA, {CA: trusted.decode()})
    told: dict[str, str] = {}
    for name, subject in subjects(store.namespace).items():
        secret = await store.secret(name)
        if secret is None:
            await store.make_secret(name, _files(issued(authorities, subject, now), trusted), type_=TLS)
            told[name] = "made"
        elif why := await _mended(store, secret, subject, authorities, trusted, now):
            told[name] = why
    return told


async def _mended(  # noqa: PLR0913, PLR0917  (all that a certificate is judged by)
    store: KeyStore, secret: Secret, subject: Subject, authorities: tuple[Pair, ...], trusted: bytes, now: datetime
) -> str:
    if not secret.is_ours:
        return "left as it is: it was not made here"
    files = secret.files()
    pair = Pair(files.get(CERTIFICATE, b""), files.get(KEY, b""))
    if why := why_renew(pair, subject, authorities, now):
        await store.change_secret(secret, _files(issued(authorities, subject, now), trusted))
        return f"made again: {why}"
    if files.get(CA) != trusted:
        await store.change_secret(secret, {CA: trusted})
        return "has another authority now"
    return ""


async def _authorities(store: KeyStore, now: datetime) -> tuple[Pair, ...]:
    """The CAs, with one that outlives what it will sign. A new one is trusted long before it signs anything."""
    secret = await store.secret(AUTHORITY)
    if secret is None:
        secret = await store.make_secret(AUTHORITY, authority_files(new_authority(now)))
    elif needs_another(authorities_in(secret.files()), now):
        secret = await store.change_secret(secret, authority_files(new_authority(now)))
    return authorities_in(secret.files())


def _files(pair: Pair, trusted: bytes) -> dict[str, bytes]:
    return {CERTIFICATE: pair.certificate, KEY: pair.key, CA: trusted}
