"""KubeShare 2: `sharedgpu/gpu_request`, `gpu_limit`, `gpu_mem`, `gpu_model` and `priority`, as labels of a pod.

Up to 1 it is a part of one card, above 1 a number of whole cards; all app containers of the pod share them. A pod with
priority 0 is opportunistic and fills cards that are in use; one with a higher priority prefers idle cards.

As in KubeShare: the limit is required, and numbers must have its notation; 0.0 for both is a pod without cards; for
whole cards `gpu_mem` is ignored. Differences: pods that would get no resources are refused instead of started: a
request of 0 needs an amount of memory, since its default would be none, and a limit above 1 needs an equal request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Final

from partage_dialects.amounts import milli, read_whole, refused
from partage_dialects.one_card import Asks, asked_together
from partage_plugins.api.allocation import Allocation
from partage_plugins.api.gpu import GPU, GpuRequest
from partage_plugins.api.inventory import Inventory
from partage_plugins.api.limits import MAX_CARDS, WHOLE_MILLI
from partage_plugins.api.pods import Pod
from partage_plugins.api.words import DialectWords
from partage_plugins.hooks import hookimpl

REQUEST: Final = "sharedgpu/gpu_request"
LIMIT: Final = "sharedgpu/gpu_limit"
MEMORY: Final = "sharedgpu/gpu_mem"
MODEL: Final = "sharedgpu/gpu_model"
PRIORITY: Final = "sharedgpu/priority"
OPPORTUNISTIC: Final = "binpack"
GUARANTEED: Final = "spread"
GUARANTEED_CARDS: Final = "topology"
"""For several cards: close ones."""
_ASKING: Final = frozenset((LIMIT, REQUEST, MEMORY))
_GANGS: Final = ("group_name", "group_headcount", "group_threshold", "pod_group_name", "min_available")
_WRITTEN: Final = ("gpu_uuid", "cell_id", "gpu_manager_port")
_KNOWN: Final = frozenset(f"sharedgpu/{name}" for name in (*_GANGS, *_WRITTEN))
_NUMBER: Final = re.compile(r"0{1,20}\.[0-9]{1,20}|[1-9][0-9]{0,3}\.0{1,20}|[1-9]{1,4}", re.ASCII)
_ALLOWED: Final = "a part of a card such as 0.5 or 1.0, or whole cards such as 2.0"
_BYTES: Final = "bytes of the card's memory, a whole number such as 1073741824"
_PRIORITY: Final = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
_LOWEST, _HIGHEST = -1, 100


class KubeShareV2:
    @hookimpl
    def partage_requests(self, pod: Pod) -> Asks | None:
        wanted = read_v2(pod.labels)
        return None if wanted is None else asked_together(pod, wanted)

    @hookimpl
    def partage_words(self) -> Sequence[DialectWords]:
        return (
            DialectWords(
                system="KubeShare 2",
                where="labels",
                asking=_ASKING,
                beside=frozenset((MODEL, PRIORITY)),
                known=_KNOWN,
                prefixes=("sharedgpu/",),
                remedy=f"A pod asks by the labels {REQUEST}, gpu_limit and gpu_mem",
            ),
        )

    @hookimpl
    def partage_mirror(self, pod: Pod, allocation: Allocation, inventory: Inventory) -> Mapping[str, str] | None:
        """All containers have the same cards."""
        if _ASKING.isdisjoint(pod.labels):
            return None
        given = next(iter(allocation.of(GPU).values()), ())
        part = inventory.part(GPU)
        models = {card.model for each in given if part and (card := part.card(each.card))}
        return {
            "sharedgpu/gpu_uuid": ",".join(each.card for each in given),
            "sharedgpu/gpu_model": ",".join(sorted(models)),
            MEMORY: str(sum(each.memory_bytes for each in given)),
        }


def read_v2(said: Mapping[str, str]) -> GpuRequest | None:
    """The request in the labels, for the pod as a whole; None if there is none."""
    if _ASKING.isdisjoint(said):
        return None
    is_guaranteed = _priority(said.get(PRIORITY)) > 0
    limit = _number(said, LIMIT)
    request = _number(said, REQUEST) if REQUEST in said else Decimal(0)
    if limit > 1:
        return _cards(said, request, limit, is_guaranteed=is_guaranteed)
    if request > limit:
        raise refused(REQUEST, said[REQUEST], f"a number from 0.0 to {LIMIT}, which is {said[LIMIT]}")
    return _part(said, request, limit, is_guaranteed=is_guaranteed) if limit else None


def _cards(said: Mapping[str, str], request: Decimal, limit: Decimal, *, is_guaranteed: bool) -> GpuRequest:
    if request != limit:
        raise refused(REQUEST, said.get(REQUEST), f"as {LIMIT}, {said[LIMIT]}: above 1.0 there are whole cards alone")
    if limit > MAX_CARDS:
        raise refused(LIMIT, said[LIMIT], f"at most {MAX_CARDS} cards")
    return GpuRequest(
        count=int(limit),
        share_milli=WHOLE_MILLI,
        models=_models(said),
        policy=GUARANTEED_CARDS if is_guaranteed else OPPORTUNISTIC,
    )


def _part(said: Mapping[str, str], request: Decimal, limit: Decimal, *, is_guaranteed: bool) -> GpuRequest:
    memory = read_whole(said, MEMORY, allowed=_BYTES) if MEMORY in said else 0
    if not memory and not request:
        raise refused(MEMORY, said.get(MEMORY), f"{_BYTES}: where {REQUEST} is 0 its default would be none")
    return GpuRequest(
        share_milli=milli(request),
        limit_milli=milli(limit),
        memory_bytes=memory or None,
        models=_models(said),
        policy=GUARANTEED if is_guaranteed else OPPORTUNISTIC,
    )


def _number(said: Mapping[str, str], key: str) -> Decimal:
    number = _as_written(said.get(key, ""))
    if number is None:
        raise refused(key, said.get(key), _ALLOWED)
    return number


@lru_cache(maxsize=1 << 10)
def _as_written(text: str) -> Decimal | None:
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _priority(text: str | None) -> int:
    if not text:
        return 0
    number = int(text) if _PRIORITY.fullmatch(text) else _HIGHEST + 1
    if not _LOWEST <= number <= _HIGHEST:
        raise refused(PRIORITY, text, f"a whole number from 0 to {_HIGHEST}")
    return number


def _models(said: Mapping[str, str]) -> tuple[str, ...]:
    """One model, with hyphens for the spaces of its name, which labels can't have."""
    model = said.get(MODEL)
    return (model,) if model else ()
