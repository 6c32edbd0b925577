"""Decides for one container how its cards are attached, and refuses whatever would add others. Pure.

The container's own statements about cards are not trusted. NVIDIA's runtime can be a node's default handler and reads
the container's environment in any case, so `NVIDIA_VISIBLE_DEVICES` is always set: to the granted cards if that runtime
is to attach them, to `void` (add nothing) otherwise. Its other sources, which can't be overwritten (annotations and
mounts that name devices), are refused. Cards are named by UUID alone: `all` or `0` could be a card's id in an
inventory, and would mean other cards to a runtime.
"""

from __future__ import annotations

import re
from typing import Final

from partage_gpu.node.settings import GpuSettings, Way
from partage_plugins.api.containers import Adjustment, Container, Granted
from partage_plugins.api.gpu import GPU, Card
from partage_plugins.api.nvidia import (
    ANNOTATIONS,
    HANDLERS,
    MIG_VARIABLES,
    VISIBLE,
    VOID,
    is_nvidias,
    mounted_name,
)
from partage_plugins.errors import Refused
from partage_plugins.rules.paths import clean_path

OUR_KIND: Final = "partage.dev/gpu"
NVIDIA_KIND: Final = "nvidia.com/gpu"
DRIVER_CAPABILITIES: Final = "NVIDIA_DRIVER_CAPABILITIES"
CARD_ID: Final = re.compile(r"(GPU|MIG)(-[A-Za-z0-9]+)+", re.ASCII)

_CARD_NODE: Final = re.compile(r"/dev/nvidia([0-9]+|-caps/.*)", re.ASCII | re.DOTALL)


def way_for(container: Container, settings: GpuSettings) -> Way:
    """The configured way, or else one that depends on the container's runtime.

    A pod that names NVIDIA's runtime gets its cards through it. All others get them by CDI if the runtime reports
    support for it: one without support would silently start the container without its cards. A claim always uses CDI.
    """
    if container.is_claim:
        return "nvidia-cdi" if settings.attach == "nvidia-cdi" else "cdi"
    if settings.attach is not None:
        return settings.attach
    if container.security.runtime_handler in HANDLERS:
        return "nvidia-env"
    if container.runtime.takes_cdi:
        return "cdi"
    return "nvidia-env" if is_nvidias(container.runtime.program or "") else "raw"


def granted_cards(granted: Granted) -> tuple[Card, ...]:
    """The cards in the order of the grants; each is on this node, and its id means that card to every runtime."""
    part, cards = granted.part(GPU), dict[str, Card]()
    for card_id in dict.fromkeys(grant.card for grant in granted.of(GPU)):
        card = part.card(card_id) if part else None
        if card is None:
            raise Refused(f"partage: card {card_id} is not on this node; was it taken out? Delete the pod to move it")
        if not CARD_ID.fullmatch(card_id):
            raise Refused(f"partage: card {card_id} cannot be attached; allowed: an id such as GPU-… or MIG-…")
        cards[card_id] = card
    return tuple(cards.values())


def require_no_other_request(container: Container) -> None:
    """Refuses a container that requests cards itself in a way that an adjustment can't undo."""
    for name in container.annotations:
        if name.startswith(ANNOTATIONS):
            raise _refused(f"annotation {name} of the pod")
    for mount in container.mounts:
        if mounted_name(clean_path(mount.container_path)) is not None:
            raise _refused(f"mount {mount.container_path}")
    for device in container.devices:
        for path in (device.host_path, device.container_path):
            if _CARD_NODE.fullmatch(clean_path(path)):
                raise _refused(f"device {path}")
    for name, _ in container.env:
        if name in MIG_VARIABLES:
            raise _refused(f"variable {name}")


def attached(way: Way, cards: tuple[Card, ...], container: Container, settings: GpuSettings) -> Adjustment:
    """The adjustment for every way but `raw`."""
    if way == "nvidia-env":
        visible = ",".join(card.id for card in cards)
        return Adjustment(env={VISIBLE: visible, **_capabilities_set(container, settings)})
    kind = NVIDIA_KIND if way == "nvidia-cdi" else OUR_KIND
    return Adjustment(env={VISIBLE: VOID}, cdi=tuple(f"{kind}={card.id}" for card in cards))


def named_capabilities(container: Container) -> str | None:
    """The container's own value for the driver's capabilities; of two values the last one counts."""
    values = [value for name, value in container.env if name == DRIVER_CAPABILITIES]
    return values[-1].decode("ascii", errors="replace") if values else None


def _capabilities_set(container: Container, settings: GpuSettings) -> dict[str, str]:
    """Set only if configured: our value would replace the image's own, which the request does not contain."""
    if not settings.capabilities or named_capabilities(container) is not None:
        return {}
    return {DRIVER_CAPABILITIES: ",".join(settings.capabilities)}


def _refused(what: str) -> Refused:
    return Refused(f"partage: {what} asks for cards beside the container's grant; remove it")
