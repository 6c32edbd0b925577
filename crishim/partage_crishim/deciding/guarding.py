"""Keeps containers without a grant from cards: what NVIDIA's runtime would read is true, or says `void`. Pure.

NVIDIA's runtime gives cards to whoever names them in `NVIDIA_VISIBLE_DEVICES`, and images may name all. So a value is
kept only if kubelet confirms every card in it: a container that kubelet's own device manager served keeps its request
as it is. Everything else becomes `void` (the runtime then adds nothing), with all duplicates, and where that runtime
will run the container, `void` is added if nothing is said, since the image's own variables are not in the request. The
other ways in: variables that open the configuration of cards, mounts that stand for devices, and pod annotations, which
can only be refused. What nobody can tell is `void` too, and never a refusal.

A container that kubelet gave a card on which our grants live is refused: it would use what others were promised.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from partage_base.cri.creating import Changes, CreateRequest
from partage_crishim.deciding.capacity import Held
from partage_crishim.deciding.errors import CardsBesideUs
from partage_crishim.deciding.placing import is_below
from partage_plugins.vocabulary import Card, CardId, GpuPart

VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"
VOID: Final = b"void"
MOUNTED: Final = "/var/run/nvidia-container-devices"
"""A mount below it asks for the card it is named after, where NVIDIA's runtime is set to read mounts."""
_CHANNELS: Final = MOUNTED + "/imex"
"""These stand for channels between machines, and for no card."""
_HARMLESS: Final = frozenset((b"", b"void", b"none"))
_CONFIGURING: Final = ("NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_MIG_MONITOR_DEVICES")
_POD_ANNOTATIONS: Final = "nvidia.cdi.k8s.io/"
_CONTAINER_ANNOTATIONS: Final = ("cdi.k8s.io/", "nvidia.cdi.k8s.io/")
NVIDIA_HANDLERS: Final = frozenset(("nvidia", "nvidia-cdi", "nvidia-legacy"))


@dataclass(frozen=True, kw_only=True)
class GuardPolicy:
    """What the operator set. `auto`: on where the node has cards."""

    mode: Literal["auto", "on", "off"] = "auto"
    trusted: frozenset[str] = frozenset()
    """Namespaces whose pods may ask for any card: monitoring, device plugins."""
    nvidia_handlers: frozenset[str] = NVIDIA_HANDLERS
    nvidia_is_default: bool = False
    """Whether the runtime runs NVIDIA's where a pod names no handler."""

    def runs_nvidia(self, handler: str) -> bool:
        """Whether NVIDIA's runtime runs a sandbox of this handler."""
        return handler in self.nvidia_handlers or (self.nvidia_is_default and not handler)


def require_no_annotations(request: CreateRequest) -> None:
    """Refuses pod annotations by which users name cards to NVIDIA's runtime: they cannot be taken back for one pod."""
    for name in request.annotations:
        if name.startswith(_POD_ANNOTATIONS):
            raise CardsBesideUs(
                f"partage: annotation {name!a:.200} of the pod asks for cards past every allocation; ask for "
                "partage.dev/ resources instead, or have the namespace trusted"
            )


def names_cards(request: CreateRequest) -> bool:
    """Whether the request names cards in a way that kubelet must confirm."""
    return any(value not in _HARMLESS for value in _visible(request)) or bool(_mounted(request))


def says_nothing(request: CreateRequest) -> bool:
    """Whether the image's own variable would count."""
    return not _visible(request)


def guarded(
    request: CreateRequest, served: frozenset[CardId] | None, part: GpuPart | None, *, adds_void: bool
) -> Changes:
    """What to change; nothing where all is true. `served` is what kubelet gave, None where that is not known."""
    confirmed = served or frozenset[CardId]()
    env: dict[str, bytes] = {name: b"" for name, value in request.env if name in _CONFIGURING and value}
    false_mounts = frozenset(path for path, name in _mounted(request).items() if not _named(name, part) <= confirmed)
    by_mounts = len(false_mounts) < len(_mounted(request))
    values = _visible(request)
    true = [value for value in values if value in _HARMLESS or _is_true(value, confirmed, part, by_mounts=by_mounts)]
    if len(true) < len(values):
        env[VISIBLE] = next((value for value in true if value not in _HARMLESS), VOID)
    elif not values and adds_void:
        env[VISIBLE] = VOID
    return Changes(env=env, without_mounts=false_mounts)


def void(request: CreateRequest) -> Changes:
    """What is certainly safe, for when nothing can be told."""
    return guarded(request, None, None, adds_void=True)


def native_cards(request: CreateRequest, served: frozenset[CardId], part: GpuPart | None) -> frozenset[CardId]:
    """The cards that kubelet gave this container, by what it says and by what only its plugins can have written."""
    names = [*request.cdi]
    for key, value in request.own_annotations.items():
        if key.startswith(_CONTAINER_ANNOTATIONS):
            names += value.split(",")
    return served.union(*(_named(name, part) for name in names if "=" in name))


def require_unshared(native: Iterable[CardId], held: Iterable[Held], part: GpuPart | None) -> None:
    """Refuses a container of kubelet's whose card, or a part of it, carries grants."""
    mine = frozenset(native)
    with_kin = mine.union(*(_kin(card, mine) for card in (part.cards if part else ())))
    for each in held:
        for grant in each.cards:
            if grant.card in with_kin:
                raise CardsBesideUs(
                    f"partage: kubelet gave this container card {grant.card}, which carries grants of partage; reserve "
                    "each card for one of both, and delete the pod to move it"
                )


def card_ids(devices: Iterable[str]) -> frozenset[CardId]:
    """The cards among device ids as plugins tell kubelet: replicas and CDI names are still their card."""
    return frozenset(CardId(device.partition("::")[0].rpartition("=")[2]) for device in devices)


def _visible(request: CreateRequest) -> list[bytes]:
    return [value for name, value in request.env if name == VISIBLE]


def _mounted(request: CreateRequest) -> Mapping[str, str]:
    """What mounts stand for, by their paths as written."""
    found: dict[str, str] = {}
    for mount in request.mounts:
        cleaned = "/" + posixpath.normpath(mount.container_path).lstrip("/")
        folder, _, name = cleaned.rpartition("/")
        if is_below(folder, MOUNTED) and not is_below(folder, _CHANNELS):
            found[mount.container_path] = name
    return found


def _is_true(value: bytes, confirmed: frozenset[CardId], part: GpuPart | None, *, by_mounts: bool) -> bool:
    text = value.decode("ascii", errors="replace").strip()
    if text.rstrip("/") == MOUNTED:
        return by_mounts
    return all(_named(item, part) <= confirmed for item in text.split(","))


def _named(item: str, part: GpuPart | None) -> frozenset[CardId]:
    """The cards that an item of a list means; itself where it means none that we know."""
    name = item.strip().rpartition("=")[2]
    cards: tuple[Card, ...] = part.cards if part else ()
    if name == "all" and cards:
        return frozenset(card.id for card in cards)
    if name.isdecimal():
        found = frozenset(card.id for card in cards if card.parent is None and str(card.index) == name)
        return found or frozenset((CardId(name),))
    return frozenset((CardId(name),))


def _kin(card: Card, mine: frozenset[CardId]) -> frozenset[CardId]:
    """The GPU that an instance of mine is part of, and the instances of a GPU of mine."""
    if card.parent is None:
        return frozenset()
    if card.id in mine:
        return frozenset((card.parent,))
    return frozenset((card.id,)) if card.parent in mine else frozenset()
