"""Why a card is not ok: how grave, by which code, in which words. Pure; `health` decides over time, `xids` on XIDs.

Words are told in the inventory, so they are stable: no figures and no times, or the inventory would change for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from partage_gpu.nvml.facts import CardFacts, Trouble
from partage_plugins.vocabulary.health import CardHealth, HealthCause

LONGEST_REASON: Final = 256
"""As the inventory allows."""


class Gravity(IntEnum):
    """What a cause does to a card, and what ends it."""

    WATCHED = 0
    """Nothing is wrong any more; quiet ends it."""
    PASSING = 1
    """Something happened; quiet ends it."""
    RESET = 2
    """Something happened that only a reset of the card mends; seeing one ends it, and then quiet."""
    WANTS_RESET = 3
    """The driver says so itself; that it no longer does ends it, and then quiet."""
    WORN = 4
    """The card must be replaced; as above."""
    LOST = 5
    """The card cannot be used; that a look shows it again ends it, and then quiet."""
    FELL_OFF = 6
    """As above, and it was told why; these words stay."""


@dataclass(frozen=True)
class Cause:
    """One reason not to be ok."""

    gravity: Gravity
    code: HealthCause
    words: str

    @property
    def is_lost(self) -> bool:
        """The card cannot be used."""
        return self.gravity >= Gravity.LOST

    @property
    def health(self) -> CardHealth:
        """A card's that has it."""
        return CardHealth("lost" if self.is_lost else "degraded", self.code, self.words)

    @property
    def is_sign(self) -> bool:
        """Looks show it as long as it lasts; all others are remembered."""
        return self.gravity >= Gravity.WANTS_RESET


@dataclass(frozen=True)
class Away:
    """A look that does not show the card."""

    because: str
    code: HealthCause = HealthCause.FAULT


CAME_BACK: Final = Cause(Gravity.WATCHED, HealthCause.RECOVERING, "came back, being watched")
MEMORY_ERROR: Final = Cause(
    Gravity.PASSING, HealthCause.MEMORY_ERROR, "an error of memory that ECC could not correct; being watched"
)
WANTS_RESET: Final = Cause(
    Gravity.WANTS_RESET, HealthCause.NEEDS_RESET, "the driver asks for a reset; drain the node and reset the card"
)
WORN: Final = Cause(
    Gravity.WORN, HealthCause.WORN, "no spare rows of memory are left; drain the node and have the card replaced"
)
BLIND: Final = CardHealth.degraded(
    HealthCause.BLIND,
    "NVML does not tell how much memory a process holds of this card, so limits can't be checked;"
    " PARTAGE_GPU_SHARE_BLIND=yes shares it all the same",
)
GONE: Final = Away("the driver no longer shows this card; was it taken out?", HealthCause.GONE)


def signs_of(shown: CardFacts | Away) -> Iterator[Cause]:
    """What is wrong as one look shows it."""
    if isinstance(shown, Away):
        yield Cause(Gravity.LOST, shown.code, plain(shown.because))
        return
    if shown.fault is not None:
        yield Cause(Gravity.LOST, HealthCause.FAULT, plain(shown.fault))
    if shown.row_remap_failed:
        yield WORN
    if shown.needs_reset:
        yield WANTS_RESET


def away_by(trouble: Trouble) -> Away:
    """All cards, while the driver does not speak of any. How long it has been silent is not for the inventory."""
    is_silent = trouble.kind in ("hangs", "slow")
    return Away("the NVIDIA driver does not answer" if is_silent else trouble.sentence, HealthCause.DRIVER)


def plain(text: str, longest: int = LONGEST_REASON, *, otherwise: str = "no reason was given") -> str:
    """The text as one printable line of some length, never empty."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * longest]).split())
    short = line or otherwise
    return short if len(short) <= longest else short[: longest - 1] + "…"
