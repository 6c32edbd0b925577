"""The rules of the device filter: containers reach only cards that were given to them. Pure.

One rule applies to every container: what NVIDIA's runtime reads is either confirmed or replaced by `without_cards`. For
a container with a grant it covers everything that the plugins leave unset.

NVIDIA's runtime gives a container the cards named in `NVIDIA_VISIBLE_DEVICES`, and images may name all. So a value is
kept only if kubelet confirms every card in it: a container served by kubelet's own device manager keeps its request
unchanged. Any other value becomes `without_cards`, including all duplicates; the runtime then adds nothing. If NVIDIA's
runtime will run the container and the request does not set the variable, `without_cards` is added, since the image's
own variables are not visible in the request.

The other ways to cards are variables that allow their configuration, mounts that stand for devices, and pod
annotations, which can only be refused. Anything unknown becomes `without_cards` as well, never a refusal.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from partage_base.cri.create_request import Changes, CreateRequest
from partage_base.cri.runtime_config import RuntimeConfig
from partage_crishim.rules.errors import CardsBesideUs
from partage_plugins.api import Card, CardId, GpuPart
from partage_plugins.api.nvidia import (
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
from partage_plugins.rules.paths import clean_path

_VOID: Final = VOID.encode()
_HARMLESS: Final = frozenset((b"", _VOID, b"none"))
_VARIABLES: Final = MIG_VARIABLES | {VISIBLE}


@dataclass(frozen=True, kw_only=True)
class GuardPolicy:
    """Operator settings. `auto`: on if cards, a driver or NVIDIA's runtime are present, or may be."""

    mode: Literal["auto", "on", "off"] = "auto"
    trusted: frozenset[str] = frozenset()
    """Namespaces whose pods may ask for any card: monitoring, device plugins."""
    nvidia_handlers: frozenset[str] = HANDLERS

    def runs_nvidia(self, handler: str, config: RuntimeConfig) -> bool:
        """Whether NVIDIA's runtime may run a sandbox of this handler; True for a default handler that is unknown."""
        program = config.program_of(handler)
        if (handler or config.default_handler) in self.nvidia_handlers:
            return True
        return is_nvidias(program) if program is not None else not handler

    def may_run_nvidia(self, config: RuntimeConfig) -> bool:
        """Whether NVIDIA's runtime may run any sandbox."""
        return any(self.runs_nvidia(handler, config) for handler in ("", *config.programs))


def require_no_annotations(request: CreateRequest) -> None:
    """Refuse pod annotations that name cards to NVIDIA's runtime: they cannot be removed for one pod."""
    for name in request.annotations:
        if name.startswith(ANNOTATIONS):
            raise CardsBesideUs(
                f"partage: annotation {name!a:.200} of the pod asks for cards past every allocation; ask for "
                "partage.dev/ resources instead, or have the namespace trusted"
            )


@dataclass(frozen=True)
class NvidiaRequest:
    """The parts of a request that NVIDIA's runtime reads."""

    visible: tuple[bytes, ...]
    """All values of `NVIDIA_VISIBLE_DEVICES`."""
    configuring: tuple[str, ...]
    """Variables that allow the configuration of cards."""
    mounted: Mapping[str, str]
    """Card names by mount path, as written, for mounts that stand for devices."""

    @property
    def names_cards(self) -> bool:
        """Whether it names cards that kubelet must confirm."""
        return bool(self.mounted) or any(value not in _HARMLESS for value in self.visible)


def asked_by(request: CreateRequest, replaced: Container[str] = ()) -> NvidiaRequest:
    """What a request asks of NVIDIA's runtime, without the variables that plugins replace."""
    said = [(name, value) for name, value in request.env if name in _VARIABLES and name not in replaced]
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
    """The changes to make; none if everything is confirmed. `served` is what kubelet gave, None if unknown."""
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


def without_cards(request: CreateRequest) -> Changes:
    """Changes that are safe when nothing is known."""
    return guarded(asked_by(request), None, None, adds_void=True)


def native_cards(request: CreateRequest, served: frozenset[CardId], part: GpuPart | None) -> frozenset[CardId]:
    """The cards that kubelet gave to this container, from its answer and fields that only its plugins can set."""
    names = [*request.cdi]
    for key, value in request.own_annotations.items():
        if key.startswith(ANNOTATIONS):
            names += value.split(",")
    return served.union(*(_named(name, part) for name in names if "=" in name))


def card_ids(devices: Iterable[str]) -> frozenset[CardId]:
    """The cards among device ids that plugins report to kubelet: replicas and CDI names are mapped to their card."""
    return frozenset(CardId(device.partition("::")[0].rpartition("=")[2]) for device in devices)


def _is_true(value: bytes, confirmed: frozenset[CardId], part: GpuPart | None, *, by_mounts: bool) -> bool:
    text = value.decode("ascii", errors="replace").strip()
    if text.rstrip("/") == MOUNTED:
        return by_mounts
    return all(_named(item, part) <= confirmed for item in text.split(","))


def _named(item: str, part: GpuPart | None) -> frozenset[CardId]:
    """The cards that a list item means; the item itself if it matches no known card."""
    name = item.strip().rpartition("=")[2]
    cards: tuple[Card, ...] = part.cards if part else ()
    if name == "all" and cards:
        return frozenset(card.id for card in cards)
    if name.isdecimal():
        found = frozenset(card.id for card in cards if card.parent is None and str(card.index) == name)
        return found or frozenset((CardId(name),))
    return frozenset((CardId(name),))
