"""Keeps containers from cards that were not given to them: what NVIDIA's runtime reads is true, or `void`. Pure.

There is one rule for every container. One with a grant meets it as well, in all that the plugins leave alone.

NVIDIA's runtime gives a container the cards that it names in `NVIDIA_VISIBLE_DEVICES`, and images may name all. So a
value is kept only if kubelet confirms every card in it: a container that kubelet's own device manager served keeps its
request as it is. Every other value becomes `void`, with all duplicates; the runtime then adds nothing. Where NVIDIA's
runtime will run the container, `void` is added if the request says nothing, since it does not show the image's own
variables.

The other ways in are variables that open the configuration of cards, mounts that stand for devices, and pod
annotations, which can only be refused. What is unknown is `void` too, and never a refusal.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from partage_base.cri.create_request import Changes, CreateRequest
from partage_base.cri.runtime_config import RuntimeConfig
from partage_crishim.rules.errors import CardsBesideUs
from partage_plugins.rules.paths import clean_path
from partage_plugins.vocabulary import Card, CardId, GpuPart
from partage_plugins.vocabulary.nvidia import (
    ANNOTATIONS,
    CHANNELS,
    HANDLERS,
    MIG_VARIABLES,
    MOUNTED,
    VISIBLE,
    VOID,
    is_nvidias,
    mounted_name,
)

_VOID: Final = VOID.encode()
_HARMLESS: Final = frozenset((b"", _VOID, b"none"))
_VARIABLES: Final = MIG_VARIABLES | {VISIBLE}


@dataclass(frozen=True, kw_only=True)
class GuardPolicy:
    """What the operator set. `auto`: on where cards, a driver or NVIDIA's runtime are, or may be."""

    mode: Literal["auto", "on", "off"] = "auto"
    trusted: frozenset[str] = frozenset()
    """Namespaces whose pods may ask for any card: monitoring, device plugins."""
    nvidia_handlers: frozenset[str] = HANDLERS

    def runs_nvidia(self, handler: str, config: RuntimeConfig) -> bool:
        """Whether NVIDIA's runtime may run a sandbox of this handler: of the default one also where it is unknown."""
        program = config.program_of(handler)
        if (handler or config.default_handler) in self.nvidia_handlers:
            return True
        return is_nvidias(program) if program is not None else not handler

    def may_run_nvidia(self, config: RuntimeConfig) -> bool:
        """Whether it may run any sandbox."""
        return any(self.runs_nvidia(handler, config) for handler in ("", *config.programs))


def require_no_annotations(request: CreateRequest) -> None:
    """Refuses pod annotations by which users name cards to NVIDIA's runtime: they cannot be taken back for one pod."""
    for name in request.annotations:
        if name.startswith(ANNOTATIONS):
            raise CardsBesideUs(
                f"partage: annotation {name!a:.200} of the pod asks for cards past every allocation; ask for "
                "partage.dev/ resources instead, or have the namespace trusted"
            )


@dataclass(frozen=True)
class NvidiaRequest:
    """What a request says to NVIDIA's runtime."""

    visible: tuple[bytes, ...]
    """Every value of the variable that names cards."""
    configuring: tuple[str, ...]
    """Variables that open the configuration of cards."""
    mounted: Mapping[str, str]
    """The cards that mounts stand for, by their paths as written."""

    @property
    def names_cards(self) -> bool:
        """Whether it names any in a way that kubelet must confirm."""
        return bool(self.mounted) or any(value not in _HARMLESS for value in self.visible)

    def without(self, replaced: Container[str]) -> NvidiaRequest:
        """What is left to look at where plugins replace these variables, whatever they say."""
        return NvidiaRequest(
            visible=() if VISIBLE in replaced else self.visible,
            configuring=tuple([name for name in self.configuring if name not in replaced]),
            mounted=self.mounted,
        )


def asked_by(request: CreateRequest) -> NvidiaRequest:
    said = [(name, value) for name, value in request.env if name in _VARIABLES]
    mounted: dict[str, str] = {}
    for mount in request.mounts:
        name = mounted_name(clean_path(mount.container_path))
        if name and not name.startswith(CHANNELS):
            mounted[mount.container_path] = name.rpartition("/")[2]
    return NvidiaRequest(
        visible=tuple([value for name, value in said if name == VISIBLE]),
        configuring=tuple([name for name, value in said if name != VISIBLE and value]),
        mounted=mounted,
    )


def guarded(
    asked: NvidiaRequest, served: frozenset[CardId] | None, part: GpuPart | None, *, adds_void: bool
) -> Changes:
    """What to change; nothing where all is true. `served` is what kubelet gave, None where that is not known."""
    confirmed = served or frozenset[CardId]()
    env = dict.fromkeys(asked.configuring, b"")
    false_mounts = frozenset(path for path, name in asked.mounted.items() if not _named(name, part) <= confirmed)
    by_mounts = len(false_mounts) < len(asked.mounted)
    values = asked.visible
    true = [value for value in values if value in _HARMLESS or _is_true(value, confirmed, part, by_mounts=by_mounts)]
    if len(true) < len(values):
        env[VISIBLE] = next((value for value in true if value not in _HARMLESS), _VOID)
    elif not values and adds_void:
        env[VISIBLE] = _VOID
    return Changes(env=env, without_mounts=false_mounts)


def void(request: CreateRequest) -> Changes:
    """What is certainly safe, for when nothing can be told."""
    return guarded(asked_by(request), None, None, adds_void=True)


def native_cards(request: CreateRequest, served: frozenset[CardId], part: GpuPart | None) -> frozenset[CardId]:
    """The cards that kubelet gave this container, by what it says and by what only its plugins can have written."""
    names = [*request.cdi]
    for key, value in request.own_annotations.items():
        if key.startswith(ANNOTATIONS):
            names += value.split(",")
    return served.union(*(_named(name, part) for name in names if "=" in name))


def card_ids(devices: Iterable[str]) -> frozenset[CardId]:
    """The cards among device ids as plugins tell kubelet: replicas and CDI names are still their card."""
    return frozenset(CardId(device.partition("::")[0].rpartition("=")[2]) for device in devices)


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
