"""Findings of an audit: one frozen type each, with a sentence that stays the same while it is open. Pure.

A finding that `stops` means that limits are not in force; the others are only reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from partage_plugins.api.names import CardId, ContainerKey


@dataclass(frozen=True)
class Finding:
    stops: ClassVar[bool] = False
    says: ClassVar[str]
    """Template of its sentence."""

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
    """The runtime's id of the container in which it was seen: a claim may have several."""

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
    """The card shows a process that has loaded the library but never connected to the broker."""

    stops: ClassVar[bool] = True
    says: ClassVar[str] = "a process uses card {card} and does not speak with the broker, so no limit holds for it"
    card: CardId
    pid: int


@dataclass(frozen=True)
class CoveredMounts(OfContainer):
    """A process sees something else at one of our paths than what was mounted there."""

    stops: ClassVar[bool] = True
    says: ClassVar[str] = "what partage mounted at {place} is covered, moved or can be written, so limits may not hold"
    place: str


@dataclass(frozen=True)
class TooMuchToRead(OfContainer):
    """A process has too many mounts or mappings to read, so what it sees and executes can't be checked."""

    stops: ClassVar[bool] = True
    says: ClassVar[str] = "a process has more {what} than partage reads of one, so limits may not hold"
    what: str


@dataclass(frozen=True)
class BytesBeyondLedger(OfContainer):
    """The card shows more of a process than the broker lent it, contexts included."""

    stops: ClassVar[bool] = True
    says: ClassVar[str] = "a process holds more memory of card {card} than it was lent"
    card: CardId
    pid: int


@dataclass(frozen=True)
class BytesBeyondLimit(OfContainer):
    """The card shows more of all processes together than the limit allows, contexts included."""

    stops: ClassVar[bool] = True
    says: ClassVar[str] = "it holds more memory of card {card} than its limit, contexts and loaded code included"
    card: CardId


@dataclass(frozen=True)
class DoesNotMove(OfContainer):
    """It was ordered to leave the card for others' time slices, and does not."""

    stops: ClassVar[bool] = True
    says: ClassVar[str] = (
        "its memory is promised to leave card {card} for others, and does not: a kernel or a capture that "
        "does not end, or no host memory for it, holds it there"
    )
    card: CardId


@dataclass(frozen=True)
class ContainerWithoutRow(OfContainer):
    """It is running and was prepared, but the broker no longer knows it: its programs get no memory."""

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
    """The driver reports no process's memory on the card, so the ledger can't be checked."""

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
    """The card shows a process that is in none of our containers."""

    says: ClassVar[str] = (
        "a process that is in no granted container uses card {card}, and takes memory from those that are"
    )
    card: CardId
    pid: int

    @property
    def subject(self) -> str:
        return self.card
