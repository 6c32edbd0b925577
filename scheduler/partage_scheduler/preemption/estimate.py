"""Estimates which pods must leave a node for a request to fit: arithmetic only, cheap, and mostly right.

It rejects a node only if this is certain: if its cards, or CPU and memory, would not suffice with all candidates gone.
The pods that it names are checked fully afterwards; what a movable pod needs of a card for its turn is checked only
then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from partage_plugins.api import GPU, CardId, GpuPart, GpuRequest, PodRequest, PodUid, Resources
from partage_plugins.api.limits import WHOLE_MILLI
from partage_scheduler.cluster.placed_pods import PlacedPod
from partage_scheduler.preemption.importance import cost_of, started

Held = tuple[int, int, int]
"""Share, promised memory and its unmovable part of a card; or CPU and main memory of a node, and 0."""
Leaving = list[tuple[PlacedPod, Held]]


def guess(
    part: GpuPart | None,
    free: Resources,
    present: Iterable[PlacedPod],
    candidates: Sequence[PlacedPod],
    request: PodRequest,
) -> dict[PodUid, PlacedPod] | None:
    """Candidates whose leaving suffices, or None. `present` are all pods that stay, candidates included."""
    leaving: dict[PodUid, PlacedPod] = {}
    for wanted in _hardest(request):
        found = _of_cards(part, present, candidates, wanted)
        if found is None:
            return None
        leaving = found
    return _of_room(free, candidates, leaving, request.needs)


def _hardest(request: PodRequest) -> Iterable[GpuRequest]:
    """The hardest to place of several containers' requests, in place of all."""
    asks = request.of(GPU).values()
    return [max(asks, key=lambda ask: (ask.count, ask.share_milli, ask.memory_bytes or 0))] if asks else []


def _of_cards(
    part: GpuPart | None, present: Iterable[PlacedPod], candidates: Sequence[PlacedPod], wanted: GpuRequest
) -> dict[PodUid, PlacedPod] | None:
    cards = [card for card in (part.cards if part else ()) if wanted.may_have(card) and wanted.wants(card)]
    held = _held(present)
    may_leave = {placed.pod.uid for placed in candidates}
    options: list[Leaving] = []
    for card in cards:
        on_it = held.get(card.id, [])
        whole = WHOLE_MILLI, card.memory_bytes + card.beyond_bytes, card.memory_bytes
        left = _left(whole, (amounts for _, amounts in on_it))
        memory = wanted.memory_on(card.memory_bytes)
        needed = whole if wanted.idle_cards else (wanted.least_share_milli, memory, memory)
        option = _cheapest([each for each in on_it if each[0].pod.uid in may_leave], left, needed)
        if option is not None:
            options.append(option)
    count = 1 if wanted.repeats_cards else wanted.count
    if len(options) < count:
        return None
    options.sort(key=lambda option: cost_of((placed for placed, _ in option), 0))
    return {placed.pod.uid: placed for option in options[:count] for placed, _ in option}


def _held(present: Iterable[PlacedPod]) -> dict[CardId, Leaving]:
    found: dict[CardId, Leaving] = {}
    for placed in present:
        for usage in placed.usages:
            found.setdefault(usage.card, []).append(
                (placed, (usage.share_milli, usage.memory.total, usage.memory.fixed))
            )
    return found


def _of_room(
    free: Resources, candidates: Iterable[PlacedPod], leaving: dict[PodUid, PlacedPod], needs: Resources
) -> dict[PodUid, PlacedPod] | None:
    def of(placed: PlacedPod) -> Held:
        return placed.needs.cpu_milli, placed.needs.memory_bytes, 0

    left = _left((free.cpu_milli, free.memory_bytes, 0), map(_taken, map(of, leaving.values())))
    rest = [(placed, of(placed)) for placed in candidates if placed.pod.uid not in leaving]
    more = _cheapest(rest, left, (needs.cpu_milli, needs.memory_bytes, 0))
    return None if more is None else leaving | {placed.pod.uid: placed for placed, _ in more}


def _cheapest(candidates: Leaving, left: Held, needed: Held) -> Leaving | None:
    """The cheaper of two ways: within the lowest priorities, the youngest or the largest pods first."""
    if _fits(left, needed):
        return []
    youngest = _enough(candidates, left, needed, lambda each: (each[0].pod.priority, -started(each[0].pod)))
    if youngest is None or len(youngest) <= 1:
        return youngest  # there can't be fewer
    largest = _enough(candidates, left, needed, lambda each: (each[0].pod.priority, -each[1][0], -each[1][1]))
    ways = [way for way in (youngest, largest) if way is not None]
    return min(ways, key=lambda way: cost_of((placed for placed, _ in way), 0))


def _enough(
    candidates: Leaving, left: Held, needed: Held, order: Callable[[tuple[PlacedPod, Held]], object]
) -> Leaving | None:
    """Takes as many as needed, then puts back those that are not needed after all."""
    leaving: Leaving = []
    for each in sorted(candidates, key=order):  # type: ignore[arg-type]  # tuples of numbers
        if _fits(left, needed):
            break
        leaving.append(each)
        left = _left(left, [_taken(each[1])])
    if not _fits(left, needed):
        return None
    for each in reversed(leaving.copy()):
        if _fits(without := _left(left, [each[1]]), needed):
            leaving.remove(each)
            left = without
    return leaving


def _left(whole: Held, held: Iterable[Held]) -> Held:
    share, memory, stays = whole
    for each in held:
        share, memory, stays = share - each[0], memory - each[1], stays - each[2]
    return share, memory, stays


def _taken(held: Held) -> Held:
    """The negated amounts: what is free again when their holder leaves."""
    return -held[0], -held[1], -held[2]


def _fits(left: Held, needed: Held) -> bool:
    """Whether enough is left; an amount that is not needed may be negative."""
    return all(not need or need <= has for need, has in zip(needed, left, strict=True))
