"""KubeGPU's paths: cards of a container by the groups in which they must be close.

`alpha/grpresource/gpugrp1/A/gpugrp0/B/gpu/C/cards` is card C, behind one PCIe switch with all others below this
`gpugrp0/B`. `gpugrp1/A` adds no constraint: KubeGPU joins cards in one by any link, including one between processors,
so that a node is one such group. Names of groups and cards have no meaning of their own: two groups may get the same
place. A card without a group may be anywhere.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from partage_plugins.api.gpu import PCIE
from partage_plugins.api.limits import MAX_CARDS
from partage_plugins.api.topology import MAX_BUNDLES, Bundle
from partage_plugins.errors import DecodeError

_PATH: Final = re.compile(r"/(?:gpugrp1/([^/\s]+)/)?(?:gpugrp0/([^/\s]+)/)?gpu/([^/\s]+)/([^/\s]+)")
"""The outer and the inner group, the card, and its property."""
_Card: TypeAlias = tuple[str | None, str | None, str]
"""Its outer and inner group, and its name."""
_WORDS: Final = "gpugrp1/NAME/gpugrp0/NAME/gpu/NAME/cards or …/memory, with or without the groups"


class Paths(NamedTuple):
    """The parsed paths of one container."""

    cards: int
    least_card_bytes: int
    """The most memory that is requested of any card."""
    bundles: tuple[Bundle, ...]


NO_PATHS: Final = Paths(0, 0, ())


def read_paths(requests: Mapping[str, int], prefix: str, *, at: str) -> Paths:
    """Parses the paths below a prefix; `at` is their place, for errors."""
    cards: set[_Card] = set()
    memory: dict[_Card, int] = {}
    for key, amount in requests.items():
        found = _PATH.fullmatch(key, len(prefix)) if key.startswith(prefix) else None
        if found is None:
            raise refused(f"{at}[{key}]", repr(key), f"{prefix}/{_WORDS}")
        outer, inner, name, what = found.groups()
        card = (outer, inner, name)
        if what == "cards":
            if amount != 1:
                raise refused(f"{at}[{key}]", str(amount), "1: a path names one card")
            cards.add(card)
        elif what == "memory":
            memory[card] = amount
        else:
            raise refused(f"{at}[{key}]", repr(what), "cards or memory: cards offer nothing else")
    for _, _, name in memory.keys() - cards:
        raise refused(at, f"the memory of {name}", f"memory of a card only beside its {prefix}/…/cards")
    if len(cards) > MAX_CARDS:
        raise refused(at, f"{len(cards)} cards", f"at most {MAX_CARDS}")
    bundles = _bundles(cards)
    if len(bundles) > MAX_BUNDLES:
        raise refused(at, f"{len(bundles)} groups", f"at most {MAX_BUNDLES}")
    return Paths(len(cards), max(memory.values()) if memory else 0, bundles)


def _bundles(cards: set[_Card]) -> tuple[Bundle, ...]:
    """Groups with a single card add no constraint."""
    groups = defaultdict[tuple[str | None, str], int](int)
    for outer, inner, _ in cards:
        if inner is not None:
            groups[outer, inner] += 1
    return tuple([Bundle(PCIE, size) for size in sorted(groups.values(), reverse=True) if size > 1])


def refused(path: str, value: str, allowed: str) -> DecodeError:
    return DecodeError("request", path=path, value=value, allowed=allowed)
