"""Grants or lowered limits in force for a container or budget after a request of root. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from partage_isolation.errors import SpecRefused
from partage_isolation.ledger.budget import CardSpec
from partage_isolation.store.specs import Spec
from partage_isolation.wire.messages import Prepare, SetLimits, one_for_each_card
from partage_plugins.api.gpu import GpuGrant
from partage_plugins.api.names import BudgetName, CardId


def spec_of(question: Prepare, *, library: str, known: Spec | None, mate: Spec | None = None) -> Spec:
    """The specification in force after the request; raises `SpecRefused`.

    `known` is this container's; `mate` is of another one that uses the same budget, which changes as a whole.
    """
    if known is not None and known.budget != question.budget:
        raise SpecRefused(f"container {question.key} is {_shown(known.budget)}, not {_shown(question.budget)}")
    if known is not None and known.is_claim != question.is_claim:
        raise SpecRefused(f"{question.key} is known as {'a claim' if known.is_claim else 'a container'}")
    if question.by_hook and not question.is_claim:
        raise SpecRefused(f"{question.key} is a container, which enters nothing by a hook; only a claim is entered")
    if known is not None and known.engine_container != question.engine_container:
        raise SpecRefused(f"{question.key} is known as a claim of another container")
    spec = known or Spec(
        key=question.key,
        pod=question.pod,
        container=question.container,
        gen=question.gen,
        cards=_cards(question.grants),
        library=library,
        budget=question.budget,
        gang=question.gang,
        is_claim=question.is_claim,
        by_hook=question.by_hook,
        ends_with_last=question.ends_with_last,
        engine_container=question.engine_container,
    )
    if known is None and mate is not None:
        spec = msgspec.structs.replace(spec, is_suspended=mate.is_suspended, checkpoint=mate.checkpoint)
    before = known or mate
    return spec if before is None else spec.as_in(_changed(before, question))


def _shown(budget: BudgetName | None) -> str:
    return "in no budget" if budget is None else f"in budget {budget}"


def _changed(before: Spec, question: Prepare) -> Spec:
    """The earlier grants, or new ones of a higher gen."""
    whose = f"container {question.key}" if before.budget is None else _whose(before)
    if question.gen < before.gen:
        raise SpecRefused(f"{whose} has an allocation of gen {before.gen}; gen {question.gen} is older and is refused")
    cards = _with_numbers(before, _cards(question.grants))
    if question.gen > before.gen:
        return msgspec.structs.replace(before, gen=question.gen, cards=cards)
    if not _same(cards, before.cards):
        raise SpecRefused(f"{whose} has other grants with gen {before.gen}; a change needs a higher gen")
    return before


def _whose(spec: Spec) -> str:
    name = f"container {spec.container}" if spec.budget is None else f"budget {spec.budget}"
    return f"{name} of pod {spec.pod.name}"


def require_one_allocator(spec: Spec, standing: Iterable[Spec]) -> None:
    """Reject a claim on a card with containers of partage's scheduler, and vice versa.

    Each allocator counts only its own allocations, so a card must be empty when it changes hands. A grant for another
    engine is placed like a pod.
    """
    of_kubernetes = _is_kubernetes_claim(spec)
    for other in standing:
        if _is_kubernetes_claim(other) == of_kubernetes:
            continue
        held = {card.id for card in other.cards if card.memory}
        for card in spec.cards:
            if card.id in held:
                what = "a share of partage" if of_kubernetes else "a claim"
                raise SpecRefused(
                    f"card {card.id} has changed its pool, and pod {other.pod.name} has {what} on it still; this "
                    "passes when that has ended"
                )


class Held(NamedTuple):
    """What a container, or a budget, holds of one card."""

    card: CardSpec
    charged_bytes: int


def require_returned(
    spec: Spec, known: Spec | None, others: Sequence[Held], card_bytes: Callable[[CardId], int | None]
) -> None:
    """Reject more memory while others still hold what they must return, unless there is room beside that."""
    for card in spec.cards:
        before = known.card(card.id) if known is not None else None
        has_bytes = card_bytes(card.id)
        if has_bytes is None or card.movable or card.memory <= (before.memory if before is not None else 0):
            continue
        there = [each for each in others if each.card.id == card.id and not each.card.movable]
        late = [each for each in there if each.card.most > each.card.memory < each.charged_bytes]
        counted = sum(each.charged_bytes if each in late else each.card.memory for each in there)
        if late and counted + card.memory > has_bytes:
            raise SpecRefused(
                f"partage: card {card.id} has memory in use that was to be given back: a container that was resized "
                "holds more than its limit; kubelet tries again"
            )


def _is_kubernetes_claim(spec: Spec) -> bool:
    return spec.is_claim and not spec.by_hook


def lowered(spec: Spec, question: SetLimits) -> Spec:
    """The specification with other limits of one card, or its grant again; raises `SpecRefused`."""
    found = spec.card(question.card)
    if found is None:
        raise SpecRefused(f"{_whose(spec)} has no card {question.card}")
    changed = found
    for field, value, granted, unit in (
        ("lowered", question.memory_bytes, found.memory, "bytes"),
        ("lowered_share", question.share_milli, found.share, "milli as its share"),
        ("lowered_limit", question.limit_milli, found.limit, "milli as its limit"),
    ):
        if value is not UNSET:
            _require_no_more(spec, found, value, granted, unit)
            changed = msgspec.structs.replace(changed, **{field: value})
    _require_share_below_limit(spec, changed)
    return msgspec.structs.replace(spec, cards=tuple(changed if each is found else each for each in spec.cards))


def permitted(spec: Spec, question: Prepare | SetLimits) -> Iterator[tuple[CardId, int]]:
    """Bytes of each card that may be lent after the request, where it changes them; even if the request is rejected."""
    if isinstance(question, Prepare):
        if question.gen > spec.gen:
            yield from ((card.id, card.memory) for card in _cards(question.grants))
    elif question.memory_bytes is not UNSET and (found := spec.card(question.card)) is not None:
        yield found.id, found.memory if question.memory_bytes is None else question.memory_bytes


def _require_no_more(spec: Spec, card: CardSpec, value: int | None, granted: int, unit: str) -> None:
    if value is not None and value > granted:
        raise SpecRefused(
            f"{_whose(spec)} was granted {granted} {unit} of card {card.id}; "
            f"{value} is more, which only an allocation can give"
        )


def _require_share_below_limit(spec: Spec, card: CardSpec) -> None:
    """Check an explicitly lowered share; a share that was only granted goes down with the limit."""
    if card.lowered_share is not None and card.lowered_share > card.limit_in_force:
        raise SpecRefused(
            f"{_whose(spec)}: share {card.lowered_share} of card {card.id} would be "
            f"above its limit {card.limit_in_force}; lower both"
        )


def _cards(grants: tuple[GpuGrant, ...]) -> tuple[CardSpec, ...]:
    return tuple(
        CardSpec(
            id=grant.card,
            memory=grant.memory_bytes,
            share=grant.share_milli,
            limit=grant.limit_milli,
            movable=grant.movable,
        )
        for grant in one_for_each_card(grants)
    )


def _with_numbers(known: Spec, wanted: tuple[CardSpec, ...]) -> tuple[CardSpec, ...]:
    """Keep the places of cards that stay; a card that is gone gets no memory; new ones follow."""
    by_id = {card.id: card for card in wanted}
    stay = [
        msgspec.structs.replace(
            by_id.get(card.id, CardSpec(id=card.id, memory=0, share=0, limit=0)), most=max(card.most, card.memory)
        )
        for card in known.cards
    ]
    return (*stay, *(card for card in wanted if known.card(card.id) is None))


def _same(some: tuple[CardSpec, ...], others: tuple[CardSpec, ...]) -> bool:
    """Whether the same was granted, regardless of what root has lowered since."""
    return [(card.id, card.memory, card.share, card.limit) for card in some] == [
        (card.id, card.memory, card.share, card.limit) for card in others
    ]
