"""The inventory that the advertiser wrote, pauses of the cards, and other allocators of the same cards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.local_node import LocalNode, Unseen, names_in, text_of
from partage_cli.pauses import said_pauses
from partage_cli.tables import few
from partage_gpu.discovery.device_plugin import Registered, has_driver, registered_in
from partage_plugins.api import GPU, GpuPart, Inventory
from partage_plugins.api.health import HealthCause
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.codecs import decode_inventory
from partage_plugins.errors import DecodeError

CHECKPOINT: Final = "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
REGISTRY: Final = "var/lib/kubelet/plugins_registry"
_NVIDIA: Final = "nvidia.com"
_FEW: Final = 4
_TAKE_OUT: Final = (
    "take them out of that plugin or driver, or take it off this node, or keep them out of PARTAGE_GPU_POOL and "
    "PARTAGE_GPU_DRA of the advertiser"
)


def inventory(node: LocalNode) -> Iterator[Finding]:
    """The inventory file, and the health of the cards in it."""
    about = About("inventory", (str(node.path(INVENTORY_FILE)),))
    read = inventory_of(node)
    if isinstance(read, Unseen) and not read.is_missing:
        yield about.unknown(str(read), do="ask again as root")
    elif isinstance(read, Unseen):
        yield about.wrong(
            "is not there, so crishim refuses every container with an allocation",
            do="see advertiser: it writes this file",
        )
    elif isinstance(read, DecodeError):
        yield about.wrong(str(read), do="restart the advertiser; are it and this program of one version?")
    else:
        yield judged(about, read.part(GPU), [f"{who}: {why}" for who, why in said_pauses(node.root)])


def judged(about: About, part: GpuPart | None, pauses: list[str]) -> Finding:
    cards = () if part is None else part.cards
    if pauses:
        return about.warning(f"the cards rest: {'; '.join(pauses)}", do="`partage node resume`, when the work is done")
    sick = [f"{card.id} is {card.condition}" for card in cards if card.state != "ok"]
    if sick:
        return about.warning(
            f"{len(sick)} of {len(cards)} cards take no new pods: {few(sick, _FEW)}",
            do="`nvidia-smi`; `dmesg | grep -i xid`",
        )
    if not cards:
        return about.warning("the advertiser sees no card", do="see driver; its log says what NVML answered")
    return about.ok(f"{len(cards)} cards, all ok")


def inventory_of(node: LocalNode) -> Inventory | Unseen | DecodeError:
    text = text_of(node.path(INVENTORY_FILE))
    if isinstance(text, Unseen):
        return text
    try:
        return decode_inventory(text, (GPU,))
    except DecodeError as error:
        return error


@dataclass(frozen=True)
class NativeFacts:
    """Other allocators of cards, as kubelet's folders show them."""

    registered: Registered
    has_driver: bool
    part: GpuPart | None


def native(node: LocalNode) -> Iterator[Finding]:
    """No card has two allocators."""
    checkpoint, registry = node.path(CHECKPOINT), node.path(REGISTRY)
    about = About("device-plugin", (str(checkpoint), str(registry)))
    text, sockets = text_of(checkpoint), names_in(registry)
    unseen = next((each for each in (text, sockets) if isinstance(each, Unseen) and not each.is_missing), None)
    if unseen is not None:
        yield about.unknown(str(unseen), do="ask again as root")
        return
    registered = registered_in(text.encode()) if isinstance(text, str) else {}
    if registered is None:
        yield about.unknown(f"{checkpoint}: is no record of kubelet's that this version knows")
        return
    read = inventory_of(node)
    part = read.part(GPU) if isinstance(read, Inventory) else None
    yield handed_out(about, NativeFacts(registered, not isinstance(sockets, Unseen) and has_driver(sockets), part))


def handed_out(about: About, facts: NativeFacts) -> Finding:
    """Compare the registered devices with partage's cards."""
    cards = () if facts.part is None else facts.part.cards
    known, ours = {card.id for card in cards}, {card.id for card in cards if card.pool != "kubelet"}
    unreserved = ours - {card.id for card in cards if card.reservation}
    theirs = {name: {device.partition("::")[0] for device in devices} for name, devices in facts.registered.items()}
    others = [name for name, has in theirs.items() if has and (name.partition("/")[0] == _NVIDIA or has & known)]
    both = {name: sorted(devices & unreserved) for name, devices in theirs.items()}
    twice = [f"{name} has {few(ours_too, _FEW)}" for name, ours_too in both.items() if ours_too]
    if twice:
        return about.wrong(f"kubelet hands out cards that partage shares: {'; '.join(twice)}", do=_TAKE_OUT)
    given = [f"{card.id} ({card.condition})" for card in cards if card.cause == HealthCause.NATIVE]
    if given:
        return about.wrong(f"others hand out cards that partage shares: {few(given, _FEW)}", do=_TAKE_OUT)
    who = [*others, *(["NVIDIA's DRA driver"] if facts.has_driver else [])]
    if who and cards and not ours:
        return about.warning(
            f"{' and '.join(who)} hands out all {len(cards)} cards, and none is left to share",
            do="take it off this node, or name the cards to share in PARTAGE_GPU_POOL of the advertiser",
        )
    if who:
        return about.ok(f"{' and '.join(who)} is here, and no card is handed out by two")
    return about.ok("only partage hands out cards")
