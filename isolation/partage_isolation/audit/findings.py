"""What an audit can find wrong: one frozen type each, with a sentence that stays the same while it stands. Pure.

A finding that `stops` means that limits are not in force; the others are told and nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from partage_plugins.vocabulary.names import CardId, ContainerKey


@dataclass(frozen=True)
class Finding:
    stops: ClassVar[bool] = False
    says: ClassVar[str]
    """Its sentence, with places for what it is about."""

    @property
    def kind(self) -> str:
        return type(self).__name__

    @property
    def subject(self) -> str:
        raise NotImplementedError

    @property
    def sentence(self) -> str:
        return self.says.format_map(vars(self))


@dataclass(frozen=True)
class OfContainer(Finding):
    key: ContainerKey
    container: str | None = field(default=None, kw_only=True)
    """The runtime's id of the one in which it was seen: a claim may have several."""

    @property
    def subject(self) -> str:
        return self.key


@dataclass(frozen=True)
class ProcessWithoutLibrary(OfContainer):
    """The card shows a process that has not loaded the library."""

    stops: ClassVar[bool] = True
    says: ClassVar[str] = "a process uses card {card} without partage's library, so no limit holds for it"
    card: CardId
    pid: int


@dataclass(frozen=True)
class ProcessWithoutRow(OfContainer):
    """The card shows a process that has the library, and the broker never heard of it."""

    stops: ClassVar[bool] = True
    says: ClassVar[str] = "a process uses card {card} and does not speak with the broker, so no limit holds for it"
    card: CardId
    pid: int


@dataclass(frozen=True)
class CoveredMounts(OfContainer):
    """What a process sees at one of our places is not what was mounted there."""

    stops: ClassVar[bool] = True
    says: ClassVar[str] = "what partage mounted at {place} is covered, moved or can be written, so limits may not hold"
    place: str


@dataclass(frozen=True)
class TooMuchToRead(OfContainer):
    """A process has so many mounts or mappings that they are not all read: what it sees and runs can't be told."""

    stops: ClassVar[bool] = True
    says: ClassVar[str] = "a process has more {what} than partage reads of one, so limits may not hold"
    what: str


@dataclass(frozen=True)
class BytesBeyondLedger(OfContainer):
    """The card shows more of a process than the broker lent it, contexts and all."""

    stops: ClassVar[bool] = True
    says: ClassVar[str] = "a process holds more memory of card {card} than it was lent"
    card: CardId
    pid: int


@dataclass(frozen=True)
class BytesBeyondLimit(OfContainer):
    """The card shows more of all processes together than the limit allows, contexts and all."""

    stops: ClassVar[bool] = True
    says: ClassVar[str] = "it holds more memory of card {card} than its limit, contexts and loaded code included"
    card: CardId


@dataclass(frozen=True)
class DoesNotMove(OfContainer):
    """It was told to leave the card, since others have their turn, and does not."""

    stops: ClassVar[bool] = True
    says: ClassVar[str] = (
        "its memory is promised to leave card {card} for others, and does not: a kernel or a capture that "
        "does not end, or no host memory for it, holds it there"
    )
    card: CardId


@dataclass(frozen=True)
class ContainerWithoutRow(OfContainer):
    """It runs, was prepared, and the broker does not know it any more: its programs get no memory."""

    says: ClassVar[str] = (
        "the broker has lost what it knew of this container, which gets no memory until it is created again"
    )


@dataclass(frozen=True)
class RowWithoutProcess(OfContainer):
    """Memory stays charged for a process that is gone."""

    says: ClassVar[str] = "memory stays charged for a process that is gone"
    pid: int


@dataclass(frozen=True)
class BlindCard(Finding):
    """The driver does not say what processes hold of the card, so nothing that the books say is checked."""

    says: ClassVar[str] = (
        "NVML does not tell how much memory of card {card} a process holds: limits hold there by the word of "
        "the library alone, and what goes past it is not found"
    )
    card: CardId

    @property
    def subject(self) -> str:
        return self.card


@dataclass(frozen=True)
class ProcessOfNobody(Finding):
    """The card shows a process of no container of ours."""

    says: ClassVar[str] = (
        "a process that is in no granted container uses card {card}, and takes memory from those that are"
    )
    card: CardId
    pid: int

    @property
    def subject(self) -> str:
        return self.card
