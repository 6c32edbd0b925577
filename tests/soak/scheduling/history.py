"""The life of every pod, from a watch in the API server's own order. Pure.

A card holds its pods' grants from their binding until the pods have ended or are gone: also on lost nodes, for as long
as the pods exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from partage_plugins.api import GPU, KeyId
from partage_plugins.api.keys import ALLOCATION, GPU_MILLI, SIGNATURE
from partage_plugins.codecs import decode_allocation, verify
from partage_plugins.errors import PartageError
from partage_scheduler.objects import ApiPod

WHOLE_MILLI: Final = 1000


@dataclass
class Life:
    name: str
    seen_at: float
    bound_at: float | None = None
    node: str = ""
    was_refused: bool = False
    """It was reported unschedulable at least once."""
    holds: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


@dataclass(frozen=True)
class Placed:
    seen_at: float
    bound_at: float
    was_refused: bool
    cards: tuple[str, ...]

    @property
    def seconds(self) -> float:
        return self.bound_at - self.seen_at


class History:
    """All of it. `wrong` lists violations."""

    def __init__(self, *, card_memory_bytes: int) -> None:
        self._card_memory_bytes = card_memory_bytes
        self._lives: dict[str, Life] = {}
        self._shares, self._memory = Counter[str](), Counter[str]()
        self._signed: list[tuple[str, str, str]] = []
        self.placed: list[Placed] = []
        self.counts = Counter[str]()
        self.wrong: list[str] = []
        self.fullest_milli = 0

    @property
    def waiting(self) -> list[Life]:
        """Pods that exist and are on no node."""
        return [life for life in self._lives.values() if life.bound_at is None]

    def told(self, pod: ApiPod, at: float) -> None:
        life = self._lives.get(pod.uid)
        if life is None:
            life = self._lives[pod.uid] = Life(pod.name, at)
            self.counts["came"] += 1
        if life.node and pod.node != life.node:
            self.wrong.append(f"{pod.name} was bound to {life.node}, and then to {pod.node or 'none'}")
        life.was_refused |= any(each.reason == "Unschedulable" for each in pod.status.conditions)
        if pod.node and life.bound_at is None:
            self._bound(life, pod, at)
        if pod.is_terminal:
            self._let_go(life)

    def gone(self, pod: ApiPod) -> None:
        """A pod that is deleted, or has ended if ended pods are not watched."""
        life = self._lives.pop(pod.uid, None)
        if life is not None:
            self.counts["gone" if life.node else "gone unplaced"] += 1
            self._let_go(life)

    def verified(self, keys: Mapping[KeyId, Ed25519PublicKey]) -> int:
        """The number of good signatures; bad ones are wrong."""
        for name, text, signature in self._signed:
            try:
                verify(text, signature, keys)
            except PartageError as error:
                self.wrong.append(f"{name}: {error}")
        return len(self._signed)

    def _bound(self, life: Life, pod: ApiPod, at: float) -> None:
        life.bound_at, life.node = at, pod.node
        life.holds = self._given(pod)
        self.counts["bound"] += 1
        self.placed.append(Placed(life.seen_at, at, life.was_refused, tuple(life.holds)))
        for card, (share_milli, memory_bytes) in life.holds.items():
            self._shares[card] += share_milli
            self._memory[card] += memory_bytes
            self.fullest_milli = max(self.fullest_milli, self._shares[card])
            if self._shares[card] > WHOLE_MILLI or self._memory[card] > self._card_memory_bytes:
                now = f"{self._shares[card]} milli and {self._memory[card]} bytes"
                self.wrong.append(f"{pod.name} over-commits card {card}, of which {now} are given away")

    def _given(self, pod: ApiPod) -> Mapping[str, tuple[int, int]]:
        notes = pod.metadata.annotations
        asks = any(GPU_MILLI in container.resources.limits for container in pod.spec.containers)
        if ALLOCATION not in notes:
            if asks:
                self.wrong.append(f"{pod.name} is on {pod.node} without what it asked for")
            return {}
        self._signed.append((pod.name, notes[ALLOCATION], notes.get(SIGNATURE, "")))
        allocation = decode_allocation(notes[ALLOCATION], [GPU])
        if (allocation.pod, allocation.node) != (pod.uid, pod.node):
            self.wrong.append(f"{pod.name} has the allocation of {allocation.pod} on {allocation.node}")
        grants = [grant for each in allocation.of(GPU).values() for grant in each]
        shares, memory = Counter[str](), Counter[str]()
        for grant in grants:
            shares[grant.card] += grant.share_milli
            memory[grant.card] += grant.memory_bytes
        return {card: (shares[card], memory[card]) for card in memory}

    def _let_go(self, life: Life) -> None:
        for card, (share_milli, memory_bytes) in life.holds.items():
            self._shares[card] -= share_milli
            self._memory[card] -= memory_bytes
        life.holds = {}


@dataclass(frozen=True)
class Outage:
    """From the removal of a leader until pods were placed as before."""

    begins: float
    ends: float


def untouched(placed: Iterable[Placed], outages: Iterable[Outage]) -> list[float]:
    """The waits, in seconds, of pods outside outages for which there was room at once; sorted."""
    ranges = list(outages)
    return sorted(
        each.seconds
        for each in placed
        if not each.was_refused and not any(each.seen_at < out.ends and each.bound_at > out.begins for out in ranges)
    )


def at_share(ordered: list[float], share: float) -> float:
    """The quantile at that share; 0 of none."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
