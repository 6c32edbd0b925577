"""What the broker was told of each container, as a file of its own: what it rebuilds its books from.

A file is put in place whole or not at all, so that a broker that is killed leaves the old one or the new. Limits come
from here alone.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import msgspec
from msgspec import UNSET, Struct

from partage_base.files import write_whole
from partage_isolation.broker.containers import CardBook
from partage_isolation.control.questions import Prepare, SetLimits
from partage_isolation.errors import NoFolder, SpecRefused
from partage_plugins.vocabulary.gpu import GpuGrant
from partage_plugins.vocabulary.limits import WHOLE_MILLI
from partage_plugins.vocabulary.names import CardId, CardIdText, ContainerKey, ContainerKeyText, ContainerName
from partage_plugins.vocabulary.pods import PodRef

FOLDER: Final = "run/partage/state/containers"
_SUFFIX: Final = ".json"


class CardSpec(Struct, frozen=True, kw_only=True):
    """One card of a container; bytes and milli."""

    id: CardIdText
    memory: int
    share: int
    limit: int
    lowered: int | None = None
    """Memory, by root on the node."""
    most: int = 0
    """Memory: the highest grant so far."""
    lowered_share: int | None = None
    lowered_limit: int | None = None

    @property
    def limit_in_force(self) -> int:
        """The ceiling of its time."""
        return self.limit if self.lowered_limit is None else min(self.limit, self.lowered_limit)

    @property
    def share_in_force(self) -> int:
        """What of its time is guaranteed, never above the ceiling."""
        share = self.share if self.lowered_share is None else min(self.share, self.lowered_share)
        return min(share, self.limit_in_force)

    def book(self) -> CardBook:
        """As the ledger has it."""
        most = max(self.most, self.memory)
        return CardBook(self.id, self.memory, self.share_in_force, self.limit_in_force, self.lowered, most)


class Spec(Struct, frozen=True, kw_only=True):
    """One container. The place of a card in `cards` is its number, which never changes."""

    v: int = 1
    key: ContainerKeyText
    pod: PodRef
    container: ContainerName
    gen: int
    cards: tuple[CardSpec, ...]
    library: str
    """The folder whose library it has."""

    def card(self, card: CardId) -> CardSpec | None:
        """What it says of that card."""
        return next((each for each in self.cards if each.id == card), None)


def spec_of(question: Prepare, *, library: str, known: Spec | None) -> Spec:
    """What is in force once the question is answered; raises `SpecRefused`."""
    wanted = _cards(question.grants)
    if known is None:
        return Spec(
            key=question.key,
            pod=question.pod,
            container=question.container,
            gen=question.gen,
            cards=tuple(wanted.values()),
            library=library,
        )
    if question.gen < known.gen:
        raise SpecRefused(
            f"container {question.key} has an allocation of gen {known.gen}; gen {question.gen} is older and is refused"
        )
    cards = _with_numbers(known, wanted)
    if question.gen == known.gen and not _same(cards, known.cards):
        raise SpecRefused(
            f"container {question.key} has other grants with gen {known.gen}; a change needs a higher gen"
        )
    return known if question.gen == known.gen else msgspec.structs.replace(known, gen=question.gen, cards=cards)


def lowered(spec: Spec, question: SetLimits) -> Spec:
    """With other limits of one card, or its grant's again; raises `SpecRefused`."""
    found = spec.card(question.card)
    if found is None:
        raise SpecRefused(f"container {spec.container} of pod {spec.pod.name} has no card {question.card}")
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


def _require_no_more(spec: Spec, card: CardSpec, value: int | None, granted: int, unit: str) -> None:
    if value is not None and value > granted:
        raise SpecRefused(
            f"container {spec.container} of pod {spec.pod.name} was granted {granted} {unit} of card {card.id}; "
            f"{value} is more, which only an allocation can give"
        )


def _require_share_below_limit(spec: Spec, card: CardSpec) -> None:
    """What was said; a share that was only granted goes down with the limit."""
    if card.lowered_share is not None and card.lowered_share > card.limit_in_force:
        raise SpecRefused(
            f"container {spec.container} of pod {spec.pod.name}: share {card.lowered_share} of card {card.id} would be "
            f"above its limit {card.limit_in_force}; lower both"
        )


def _cards(grants: tuple[GpuGrant, ...]) -> dict[CardId, CardSpec]:
    """By card; several grants of one card are one larger."""
    cards: dict[CardId, CardSpec] = {}
    for grant in grants:
        before = cards.get(grant.card)
        cards[grant.card] = CardSpec(
            id=grant.card,
            memory=grant.memory_bytes + (before.memory if before else 0),
            share=min(WHOLE_MILLI, grant.share_milli + (before.share if before else 0)),
            limit=min(WHOLE_MILLI, grant.limit_milli + (before.limit if before else 0)),
        )
    return cards


def _with_numbers(known: Spec, wanted: dict[CardId, CardSpec]) -> tuple[CardSpec, ...]:
    """Cards that stay keep their places; one that is gone has no room any more; new ones follow."""
    stay = [
        msgspec.structs.replace(
            wanted.get(card.id, CardSpec(id=card.id, memory=0, share=0, limit=0)), most=max(card.most, card.memory)
        )
        for card in known.cards
    ]
    return (*stay, *(card for name, card in wanted.items() if known.card(name) is None))


def _same(some: tuple[CardSpec, ...], others: tuple[CardSpec, ...]) -> bool:
    """Whether the same was granted, whatever root has lowered since."""
    return [(card.id, card.memory, card.share, card.limit) for card in some] == [
        (card.id, card.memory, card.share, card.limit) for card in others
    ]


class Specs:
    """Their files."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER

    def load(self) -> tuple[tuple[Spec, ...], tuple[str, ...]]:
        """All that can be read; and a sentence on each that can't, which is set aside."""
        found, faults = list[Spec](), list[str]()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            try:
                found.append(_read(path))
            except (OSError, msgspec.MsgspecError, ValueError) as error:
                faults.append(f"{path} can't be read ({error}); its container gets no memory until it is made anew")
                with contextlib.suppress(OSError):
                    path.rename(path.with_suffix(".damaged"))
        return tuple(found), tuple(faults)

    def write(self, spec: Spec) -> None:
        """Puts it in place; raises `NoFolder`."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self._path(spec.key), msgspec.json.encode(spec))
        except OSError as error:
            raise NoFolder(
                f"cannot write down container {spec.key} in {self._folder}: {error.strerror}; make room there"
            ) from error

    def remove(self, key: ContainerKey) -> None:
        """It is gone."""
        with contextlib.suppress(OSError):
            self._path(key).unlink(missing_ok=True)

    def _path(self, key: ContainerKey) -> Path:
        return self._folder / f"{key}{_SUFFIX}"


def _read(path: Path) -> Spec:
    spec = msgspec.json.decode(path.read_bytes(), type=Spec)
    if spec.key != path.stem:
        raise ValueError(f"it is of container {spec.key}")
    return spec
