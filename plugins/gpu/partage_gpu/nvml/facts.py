"""What a look at the driver shows: raw facts, before anybody decides what they mean.

These cross from the child process, which alone loads NVML, to the plugin. A look that failed is a `Trouble`.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

TroubleKind = Literal["no-library", "no-driver", "mismatch", "starts", "slow", "hangs", "failed"]
"""No libnvidia-ml; library but no kernel driver; the two of different versions; no answer yet, since it was opened just
now; no answer yet, though calls return; no call returns; anything else."""


class InstanceFacts(Struct, frozen=True, kw_only=True):
    """One MIG instance of a card: compute instances that are seen as one device."""

    uuid: str
    profile: str
    """As NVIDIA writes it: `1g.10gb`."""
    memory_bytes: int
    used_bytes: int | None = None


class CardFacts(Struct, frozen=True, kw_only=True):
    """One GPU, as far as it answered."""

    uuid: str
    index: int
    """NVML's; another one after each reboot, perhaps."""
    minor: int | None = None
    model: str
    memory_bytes: int
    """All there is."""
    reserved_bytes: int = 0
    """Of it, what the driver keeps for itself."""
    has_own_memory: bool = True
    """False: it shares the host's, and the figure above is the host's."""
    compute_capability: str
    pci: str
    figures: dict[str, int] = {}
    """As NVML says them, of those in `vocabulary.gpu.FIGURES`; what the card does not say is left out."""
    is_mig: bool = False
    instances: tuple[InstanceFacts, ...] = ()
    links: dict[str, int] = {}
    """Number of NVLinks by the other card's uuid; through a switch, to every card behind it."""
    ecc_uncorrected: int | None = None
    """Since the driver was loaded."""
    row_remap_failed: bool = False
    """The card has no spare rows left: it must be replaced."""
    needs_reset: bool = False
    """Rows wait to be remapped, or the driver asks for a reset."""
    tells_use: bool | None = True
    """Whether NVML says how much of its memory a process holds; None: no process is on it."""
    fault: str | None = None
    """What NVML answered that means this card cannot be used: it fell off the bus, it wants a reset."""


class SilentCard(Struct, frozen=True, kw_only=True):
    """A card that is there, does not answer, and did not before either: nothing else is known of it."""

    index: int
    uuid: str | None = None
    fault: str
    """As in `CardFacts`."""


class NodeFacts(Struct, frozen=True, kw_only=True, tag="facts"):
    driver: str
    cuda: str
    cards: tuple[CardFacts, ...]
    silent: tuple[SilentCard, ...] = ()


class Trouble(Struct, frozen=True, kw_only=True, tag="trouble"):
    """Why a look showed nothing."""

    kind: TroubleKind
    sentence: str
    """For people: what failed, on what."""


Look = NodeFacts | Trouble


class Xid(Struct, frozen=True, kw_only=True):
    """An error that the driver reported since the last look."""

    uuid: str
    """The card; of a MIG card, too."""
    number: int


class Sample(Struct, frozen=True, kw_only=True):
    """How one card fares now; None: it does not say."""

    uuid: str
    model: str
    used_bytes: int | None = None
    total_bytes: int | None = None
    utilisation: float | None = None
    """Part of the last moments in which something ran, 0 to 1."""
    temperature_celsius: float | None = None
    power_watts: float | None = None
