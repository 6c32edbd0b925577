"""What is given of each card, by the runtime's own list, and whether all that speak of it say the same. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from partage_plugins.codecs import decode_container
from partage_plugins.vocabulary import GPU, ContainerAllocation
from partage_plugins.vocabulary.keys import CONTAINER
from partage_plugins.vocabulary.limits import WHOLE_MILLI


@dataclass(frozen=True)
class Given:
    milli: Mapping[str, int]
    """By card."""
    memory: Mapping[str, int]


def granted(annotations: Mapping[str, str]) -> ContainerAllocation | None:
    return decode_container(annotations[CONTAINER], [GPU]) if CONTAINER in annotations else None


def given(live: Iterable[Mapping[str, str]]) -> Given:
    """Of the annotations of containers that are created or run."""
    milli, memory = Counter[str](), Counter[str]()
    for allocation in filter(None, map(granted, live)):
        for grant in allocation.of(GPU):
            milli[grant.card] += grant.share_milli
            memory[grant.card] += grant.memory_bytes
    return Given(milli, memory)


def too_much(sums: Given, memory_of: Mapping[str, int]) -> list[str]:
    """Cards that are given away more than once."""
    return [
        *(f"{card}: {milli} milli are given" for card, milli in sums.milli.items() if milli > WHOLE_MILLI),
        *(
            f"{card}: {memory} bytes are given of {memory_of[card]}"
            for card, memory in sums.memory.items()
            if memory > memory_of[card]
        ),
    ]


def differences(said: Mapping[str, frozenset[str]]) -> list[str]:
    """What each says is there, against what the first says."""
    (first, there), *others = said.items()
    return [
        f"{name} has {sorted(theirs - there)[:3]} more and {sorted(there - theirs)[:3]} less than {first}"
        for name, theirs in others
        if theirs != there
    ]
