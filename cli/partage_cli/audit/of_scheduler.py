"""What the scheduler counts, by its metrics page, against what stands on nodes and pods. Pure.

It counts every 15 s, and what is under way stands nowhere yet: so a difference is a warning, worth a second look.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from partage_cli.audit.seeing import SeenCluster
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.looking import Unseen
from partage_plugins.vocabulary import GPU
from partage_plugins.vocabulary.limits import WHOLE_MILLI

_LINE: Final = re.compile(r"^partage_scheduler_(\w+) ([-+.0-9eE]+|NaN)$", re.MULTILINE)
_CLOSE: Final = 1e-6
_LEADS, _IN_FLIGHT, _CARDS = "leads", "in_flight_pods", "cards"
_SHARE, _MEMORY = "allocated_share_ratio", "allocated_memory_ratio"


def scheduler(page: str | Unseen, cluster: SeenCluster) -> Iterator[Finding]:
    """It knows the same cards, and has given away the same of them."""
    about = About("scheduler")
    if isinstance(page, Unseen):
        yield about.unknown(str(page), do="say where its metrics are: http://HOST:PORT/metrics")
        return
    said = {name: float(value) for name, value in _LINE.findall(page)}
    if missing := {_LEADS, _IN_FLIGHT, _CARDS, _SHARE, _MEMORY} - said.keys():
        yield about.unknown(
            f"no metrics of a scheduler: {', '.join(sorted(missing))} missing", do="look at the address"
        )
    elif not said[_LEADS]:
        yield about.unknown("this one does not lead, and knows nothing", do="ask the one that is ready")
    else:
        yield from _compared(about, said, _counted(cluster))


def _compared(about: About, said: Mapping[str, float], counted: Mapping[str, float]) -> Iterator[Finding]:
    busy = f" ({said[_IN_FLIGHT]:g} bindings are under way)" if said[_IN_FLIGHT] else ""
    found = [
        about.warning(f"{name} is {said[name]:g} for it, {number:g} by what stands on nodes and pods{busy}", do=_AGAIN)
        for name, number in counted.items()
        if abs(said[name] - number) > _CLOSE
    ]
    yield from found or [about.ok(f"it counts {said[_CARDS]:g} cards, and what is given away of them, as they stand")]


_AGAIN: Final = "ask again in 15 s; if it stays so, look at its log and restart it"


def _counted(cluster: SeenCluster) -> dict[str, float]:
    parts = [part for node in cluster.nodes.values() if node.inventory and (part := node.inventory.part(GPU))]
    cards = [card for part in parts for card in part.cards if card.pool == "shared" and not card.is_lost]
    held = [each.allocation for each in cluster.pods if each.allocation is not None and each.pod.node in cluster.nodes]
    grants = [grant for allocation in held for grants in allocation.of(GPU).values() for grant in grants]
    share, memory = WHOLE_MILLI * len(cards), sum(card.memory_bytes for card in cards)
    return {
        _CARDS: len(cards),
        _SHARE: sum(grant.share_milli for grant in grants) / (share or 1),
        _MEMORY: sum(grant.memory_bytes for grant in grants) / (memory or 1),
    }
