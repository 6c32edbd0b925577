"""Decides the next step for one SharePod, from its state, its pod's and the cards'. Pure.

KubeShare's rules: each SharePod has a pod until it has ended by its restart policy; users place it by hand by giving
both a node and a GPUID; a SharePod placed by the scheduler is marked with both. Messages are KubeShare's where it has
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from partage_plugins.api import Pod, PodRequest
from partage_plugins.api.names import TAG_PATTERN
from partage_plugins.errors import DecodeError, PluginError, Refused
from partage_scheduler.sharepods.cards import CardBook, Pair, cards_of
from partage_scheduler.sharepods.manifest import Manifest, as_seen, on_idle_card, pinned_to, pod_of, read_spec
from partage_scheduler.sharepods.objects import GPU_LIMIT, GPUID, MOST_BYTES, OwnedPod, SharePod

_GPUID: Final = re.compile(TAG_PATTERN)
VALUE_ERROR: Final = "ErrValueError"
RESOURCE_EXISTS: Final = "ErrResourceExists"
PLUGIN_FAILED: Final = "PluginFailed"
WAITING: Final = "Waiting"


class Nothing(Struct, frozen=True):
    """The SharePod is as it should be."""


class Leave(Struct, frozen=True):
    """It has ended, or is being deleted: its status stays."""


class Create(Struct, frozen=True):
    pod: Manifest


class Mark(Struct, frozen=True):
    """Its pod was placed: record the node and the GPUID, by which others can be placed beside it."""

    node: str
    gpuid: str


class Halt(Struct, frozen=True):
    """Nothing can be done until something changes; the reason is reported."""

    reason: str
    message: str
    is_wrong: bool = False
    """Whether the user has to act."""


Step = Nothing | Leave | Create | Mark | Halt


class Planner:
    def __init__(self, cards: CardBook, requests: Callable[[Pod], PodRequest], *, scheduler: str) -> None:
        """`requests` reads a pod by the dialects; `scheduler` is the pods' schedulerName."""
        self._cards, self._requests, self._scheduler = cards, requests, scheduler

    def next(self, share: SharePod, pod: OwnedPod | None) -> Step:
        if share.is_going:
            return Leave()
        if share.excess:
            return _wrong("metadata and spec", f"are {share.excess} bytes; allowed: at most {MOST_BYTES}")
        if pod is None:
            return Leave() if share.has_ended else self._begun(share)
        return self._marked(share, pod) if pod.is_of(share) else taken(share, pod)

    def _marked(self, share: SharePod, pod: OwnedPod) -> Step:
        cards = cards_of(pod)
        if share.gpuid or len(cards) != 1 or not pod.spec.node_name or pod.is_terminal or pod.is_going:
            return Nothing()
        return Mark(pod.spec.node_name, self._cards.gpuid(pod.spec.node_name, cards[0]))

    def _begun(self, share: SharePod) -> Step:
        try:
            spec = read_spec(share)
            asks = bool(self._requests(as_seen(share, spec)).kinds)
        except DecodeError as error:
            return _wrong(error.path, f"is {error.value}; allowed: {error.allowed}")
        except Refused as refused:
            return Halt(VALUE_ERROR, str(refused), is_wrong=True)
        except PluginError as error:
            return Halt(PLUGIN_FAILED, f"plugin {error.plugin} can't read it: {error.why}", is_wrong=True)
        if not share.gpuid and not (asks and share.node):
            return Create(pod_of(share, scheduler=self._scheduler))
        return _mistake(share, asks=asks) or self._begun_by_hand(share)

    def _begun_by_hand(self, share: SharePod) -> Step:
        pair = Pair(share.node, share.gpuid)
        if card := self._cards.card(pair):
            return Create(pod_of(share, scheduler=self._scheduler, pin=pinned_to(card)))
        if first := self._cards.first(pair):
            where = f"{first.namespace}/{first.name}, the first of GPUID {pair.gpuid} on node {pair.node}"
            return Halt(WAITING, f"waits for {where}, to be given an idle card")
        return Create(pod_of(share, scheduler=self._scheduler, pin=on_idle_card(share)))


def taken(share: SharePod, pod: OwnedPod) -> Halt:
    """The result if a pod that is not this SharePod's has its name."""
    if pod.is_going or pod.is_left_of(share.name):
        return Halt(WAITING, "waits until the former pod of this name is gone")
    message = f'Resource "{share.name}" already exists and is not managed by SharePod'
    return Halt(RESOURCE_EXISTS, message, is_wrong=True)


def _mistake(share: SharePod, *, asks: bool) -> Halt | None:
    """An error in how a SharePod is placed by hand."""
    if not asks:
        return _wrong(GPU_LIMIT, f"is missing; {GPUID} names a card, and nothing is asked of it")
    if not share.gpuid:
        return _wrong(GPUID, "is missing; a SharePod that names its node names a card there, by any word")
    if _GPUID.search(share.gpuid) is None:
        return _wrong(GPUID, f"is {share.gpuid[:80]!r}; allowed: letters, digits, -, _ and ., at most 63")
    if not share.node:
        return _wrong("spec.nodeName", f"is missing; {GPUID} names a card of a node")
    return None


def _wrong(key: str, why: str) -> Halt:
    return Halt(VALUE_ERROR, f"Value error: {key} {why}", is_wrong=True)
