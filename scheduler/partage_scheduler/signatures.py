"""Signing and verification of allocations on pods, so that tampering is detected.

Readers trust only the keys of the ring: a restarted scheduler accepts what it or another scheduler signed, and nothing
that users wrote.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import Struct

from partage_base.daemon.logs import Repeats
from partage_base.keyring import KeyringError, SigningKey
from partage_plugins.api import Allocation
from partage_plugins.api.keys import ALLOCATION, SIGNATURE
from partage_plugins.api.kinds import AnyKind
from partage_plugins.api.names import KeyId
from partage_plugins.codecs import decode_allocation, encode_allocation, sign, verify
from partage_plugins.errors import PartageError, Refused
from partage_scheduler.objects import ApiPod

LOOK_EVERY_S: Final = 10.0
_log = structlog.get_logger()
MOST_ANNOTATION_BYTES: Final = 256 << 10
"""Limit of all annotations of an object; a binding may exceed it, and then the pod can't be updated any more."""


class PublicKeys(Protocol):
    @property
    def keys(self) -> Mapping[KeyId, Ed25519PublicKey]: ...


class Signed(Struct, frozen=True):
    allocation: Allocation
    annotations: Mapping[str, str]


class Signer:
    """Signs with the key that is named as current, as of the last reload."""

    def __init__(self, load: Callable[[], SigningKey]) -> None:
        """`load` reads the key or raises `KeyringError`, and so does this."""
        self._load = load
        self.key = load()

    async def keep_fresh(self, *, every_s: float = LOOK_EVERY_S) -> None:
        """Follows key rotation, which removes the private half of the previous key."""
        repeats = Repeats(every_s=600)
        while True:
            await asyncio.sleep(every_s)
            try:
                key = self._load()
            except KeyringError as error:
                repeats.failed("the signing key can't be read again; the last one signs", error)
                continue
            if key.id != self.key.id:
                self.key = key
                _log.info("signing key in use", key=key.id)

    def sign(self, pod: ApiPod, allocation: Allocation, beside: Mapping[str, str] | None = None) -> Signed:
        """Annotations for the pod; none if it was given no device. Raises `Refused` if they would be too large."""
        if not allocation.containers:
            return Signed(allocation, {})
        text = encode_allocation(allocation)
        ours = {**(beside or {}), ALLOCATION: text, SIGNATURE: sign(text, self.key.private)}
        written = {**pod.metadata.annotations, **ours}
        size = sum(len(key.encode()) + len(value.encode()) for key, value in written.items())
        if size > MOST_ANNOTATION_BYTES:
            raise Refused(f"with its allocation the pod's annotations would be {size} bytes; remove some of them")
        return Signed(allocation, ours)


class Trust:
    def __init__(
        self,
        keys: Callable[[], PublicKeys],
        kinds: Iterable[AnyKind],
        *,
        on_refused: Callable[[ApiPod, str], None] = lambda _pod, _why: None,
    ) -> None:
        self._keys, self._kinds, self._on_refused = keys, tuple(kinds), on_refused

    def trusted(self, pod: ApiPod) -> Allocation | None:
        """The allocation of a bound pod; None where it has none, or none that can be trusted."""
        text = pod.metadata.annotations.get(ALLOCATION)
        if text is None:
            return None
        try:
            return self._verified(pod, text)
        except PartageError as error:
            self._on_refused(pod, str(error))
            return None

    def _verified(self, pod: ApiPod, text: str) -> Allocation:
        verify(text, pod.metadata.annotations.get(SIGNATURE, ""), self._keys().keys)
        allocation = decode_allocation(text, self._kinds)
        if (allocation.pod, allocation.node) != (pod.uid, pod.node):
            raise Refused(f"the allocation is that of pod {allocation.pod} on node {allocation.node}")
        return allocation


def as_written(kinds: Iterable[AnyKind]) -> Callable[[ApiPod], Allocation | None]:
    known = tuple(kinds)

    def read(pod: ApiPod) -> Allocation | None:
        text = pod.metadata.annotations.get(ALLOCATION)
        if text is None:
            return None
        try:
            return decode_allocation(text, known)
        except PartageError:
            return None

    return read
