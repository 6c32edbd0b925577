"""Names the cards that do not answer by what was known of them before. Pure.

A card that fell off the bus cannot say who it is: NVML answers for a number only. Numbers stay what they are while the
driver is loaded, so a silent card is the one that had its number in the look before, unless that one answers elsewhere.
"""

from __future__ import annotations

from msgspec.structs import replace

from partage_gpu.nvml.facts import CardFacts, NodeFacts, SilentCard


def with_known(now: NodeFacts, before: NodeFacts | None) -> NodeFacts:
    """The facts, with a card that was known before in place of each silent one, where there is one that fits."""
    if before is None or not now.silent:
        return now
    answering = {card.uuid for card in now.cards}
    missing = [card for card in before.cards if card.uuid not in answering]
    found, silent = list(now.cards), list[SilentCard]()
    for one in now.silent:
        known = _fitting(one, missing)
        if known is None:
            silent.append(one)
            continue
        missing.remove(known)
        found.append(replace(known, index=one.index, fault=one.fault))
    return replace(now, cards=tuple(sorted(found, key=lambda card: card.index)), silent=tuple(silent))


def _fitting(silent: SilentCard, missing: list[CardFacts]) -> CardFacts | None:
    if silent.uuid is not None:
        return next((card for card in missing if card.uuid == silent.uuid), None)
    return next((card for card in missing if card.index == silent.index), None)
