"""The results of a look at the driver: raw facts, without interpretation.

They are sent from the child process, which alone loads NVML, to the plugin. A failed look is a `Trouble`.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

TroubleKind = Literal["no-library", "no-driver", "mismatch", "starts", "slow", "hangs", "failed"]
"""`no-library`: no libnvidia-ml; `no-driver`: library but no kernel driver; `mismatch`: different versions of the two;
`starts`: no answer yet, since it was just opened; `slow`: no answer yet, but calls return; `hangs`: no call returns;
`failed`: anything else."""


class InstanceFacts(Struct, frozen=True, kw_only=True):
    """One MIG instance of a card, including all its compute instances that appear as one device."""

    uuid: str
    profile: str
    """NVIDIA's notation: `1g.10gb`."""
    memory_bytes: int
    used_bytes: int | None = None


class CardFacts(Struct, frozen=True, kw_only=True):
    """One GPU, as far as it answered."""

    uuid: str
    index: int
    """NVML's index, which may differ after each reboot."""
    minor: int | None = None
    model: str
    memory_bytes: int
    """Total memory."""
    reserved_bytes: int = 0
    """The part of it that the driver reserves."""
    has_own_memory: bool = True
    """False: it uses the host's memory, and `memory_bytes` is the host's."""
    compute_capability: str
    pci: str
    figures: dict[str, int] = {}
    """NVML's values of the fields in `vocabulary.gpu.FIGURES`; unsupported ones are left out."""
    is_mig: bool = False
    instances: tuple[InstanceFacts, ...] = ()
    links: dict[str, int] = {}
    """Number of NVLinks by the other card's uuid; through a switch, to every card behind it."""
    ecc_uncorrected: int | None = None
    """Since the driver was loaded."""
    row_remap_failed: bool = False
    """The card has no spare rows left and must be replaced."""
    needs_reset: bool = False
    """Rows wait to be remapped, or the driver asks for a reset."""
    tells_use: bool | None = True
    """Whether NVML reports the memory of each process; None: no process runs on it."""
    fault: str | None = None
    """NVML's error, if the card can't be used: it fell off the bus or needs a reset."""


class SilentCard(Struct, frozen=True, kw_only=True):
    """A card that does not answer, and did not before either: nothing else is known of it."""

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
    """Why a look failed."""

    kind: TroubleKind
    sentence: str
    """For people: what failed, on what."""


Look = NodeFacts | Trouble


class Xid(Struct, frozen=True, kw_only=True):
    """An error that the driver reported since the last look."""

    uuid: str
    """The card's, also for an error of a MIG instance."""
    number: int


class Sample(Struct, frozen=True, kw_only=True):
    """One card's current measurements; None: not supported."""

    uuid: str
    model: str
    used_bytes: int | None = None
    total_bytes: int | None = None
    utilisation: float | None = None
    """The fraction of the last sample period in which anything ran, 0 to 1."""
    temperature_celsius: float | None = None
    power_watts: float | None = None
