"""KubeShare 1: `kubeshare/gpu_request`, `gpu_limit` and `gpu_mem`, as annotations of a pod.

A pod has a part of one card, which all its app containers share; init containers get none of it. The pods of SharePods
are read like any others. An invented GPUID is for SharePods only: in a pod it must be the id of a card.

As in KubeShare: an empty value counts as missing; with any of the three amounts it is a pod with a card, and all three
are required. Differences: the limit must be above 0, since a pod without any time can't compute; NaN is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from partage_dialects.amounts import milli, read_decimal, read_whole, refused
from partage_dialects.one_card import Asks, asked_together
from partage_plugins.api.gpu import NO_TAGS, GpuRequest, Tags
from partage_plugins.api.names import CARD_ID_PATTERN, IN_WORDS, TAG_PATTERN, CardId
from partage_plugins.api.pods import Pod
from partage_plugins.api.words import DialectWords
from partage_plugins.hooks import hookimpl

REQUEST: Final = "kubeshare/gpu_request"
LIMIT: Final = "kubeshare/gpu_limit"
MEMORY: Final = "kubeshare/gpu_mem"
GPUID: Final = "kubeshare/GPUID"
AFFINITY: Final = "kubeshare/sched_affinity"
ANTI_AFFINITY: Final = "kubeshare/sched_anti-affinity"
EXCLUSION: Final = "kubeshare/sched_exclusion"
POLICY: Final = "kubeshare"
"""The allocator's policy that chooses cards as KubeShare's scheduler does."""
_CARD: Final = ("GPU-", "MIG-")
_TAGGED: Final = frozenset((AFFINITY, ANTI_AFFINITY, EXCLUSION))


class KubeShareV1:
    @hookimpl
    def partage_requests(self, pod: Pod) -> Asks | None:
        wanted = read_v1(pod.annotations)
        return None if wanted is None else asked_together(pod, wanted)

    @hookimpl
    def partage_words(self) -> Sequence[DialectWords]:
        return (
            DialectWords(
                system="KubeShare",
                where="annotations",
                asking=frozenset((REQUEST, LIMIT, MEMORY)),
                beside=frozenset((GPUID, *_TAGGED)),
                known=frozenset(("kubeshare/gpu_info",)),
                prefixes=("kubeshare/",),
                remedy=f"A pod asks by the annotations {REQUEST}, gpu_limit and gpu_mem",
            ),
        )


def read_v1(said: Mapping[str, str]) -> GpuRequest | None:
    """The request in the annotations, for the pod as a whole; None if there is none."""
    if not (said.get(REQUEST) or said.get(LIMIT) or said.get(MEMORY)):
        return None
    limit = read_decimal(said, LIMIT, largest=1, allowed="a number above 0, up to 1")
    if not limit:
        raise refused(LIMIT, said[LIMIT], "a number above 0, up to 1")
    request = read_decimal(said, REQUEST, largest=1, allowed=f"a number from 0 to {LIMIT}")
    if request > limit:
        raise refused(REQUEST, said[REQUEST], f"a number from 0 to {LIMIT}, which is {said[LIMIT]}")
    return GpuRequest(
        share_milli=milli(request),
        limit_milli=milli(limit),
        memory_bytes=read_whole(said, MEMORY, allowed="bytes of the card's memory, a whole number such as 1073741824"),
        tags=NO_TAGS if _TAGGED.isdisjoint(said) else _tags(said),
        cards=_cards(said),
        policy=POLICY,
    )


def _tags(said: Mapping[str, str]) -> Tags:
    return Tags(affinity=_tag(said, AFFINITY), anti_affinity=_tag(said, ANTI_AFFINITY), exclusion=_tag(said, EXCLUSION))


def _tag(said: Mapping[str, str], key: str) -> str | None:
    text = said.get(key)
    if text and re.search(TAG_PATTERN, text) is None:
        raise refused(key, text, IN_WORDS[TAG_PATTERN])
    return text or None


def _cards(said: Mapping[str, str]) -> tuple[CardId, ...]:
    text = said.get(GPUID)
    if not text:
        return ()
    if not text.startswith(_CARD) or re.search(CARD_ID_PATTERN, text) is None:
        raise refused(GPUID, text, "a card of the node, GPU- and so on; a GPUID of your own needs a SharePod")
    return (CardId(text),)
