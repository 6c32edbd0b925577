"""What a claim's allocation gives of this node's cards, or why it is refused. Pure.

The API server does not check sums, and anyone who may write `resourceclaims/binding` can write any values: so every
amount is checked against the card that it names. Several requests of a claim may share one card; they are kept separate
here, and added up where they are enforced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from partage_dra.parts import Cuts, Part
from partage_plugins.api.claim_devices import MEMORY, SHARE, device_name
from partage_plugins.api.claims import DRIVER, ClaimRef
from partage_plugins.api.gpu import Card, GpuGrant, GpuPart
from partage_plugins.api.health import HealthCause
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.codecs.quantity import parse_whole_quantity
from partage_plugins.codecs.share_config import ceiling, read_share_config
from partage_plugins.errors import DecodeError, Refused


class DeviceShare(Struct, frozen=True, kw_only=True):
    """One result of an allocation: a card, and the part of it that is allocated."""

    request: str
    pool: str
    device: str
    share_id: str | None
    card: Card
    grant: GpuGrant | None
    """None for `adminAccess`, which allows looking at the card and allocates nothing of it."""


class _Result(Struct, frozen=True, rename="camel"):
    request: str
    driver: str
    pool: str
    device: str
    share_id: str | None = msgspec.field(name="shareID", default=None)
    consumed_capacity: dict[str, str] = {}
    admin_access: bool = False


class _Opaque(Struct, frozen=True):
    driver: str
    parameters: msgspec.Raw


class _Config(Struct, frozen=True):
    requests: tuple[str, ...] = ()
    opaque: _Opaque | None = None


class _Devices(Struct, frozen=True):
    results: tuple[_Result, ...] = ()
    config: tuple[_Config, ...] = ()


class _Allocation(Struct, frozen=True):
    devices: _Devices = _Devices()


class _Status(Struct, frozen=True):
    allocation: _Allocation | None = None


class _Metadata(Struct, frozen=True):
    uid: str = ""


class Claim(Struct, frozen=True):
    """The fields of a ResourceClaim that the driver reads."""

    metadata: _Metadata = _Metadata()
    status: _Status = _Status()


MOST_RESULTS: Final = 32
"""The API server's limit for an allocation."""


def shares_of(
    claim: Claim,
    asked: ClaimRef,
    part: GpuPart,
    pool: str,
    cuts: Cuts = Cuts(),  # noqa: B008  immutable
) -> tuple[DeviceShare, ...]:
    """The claim's shares on this node, in its order; raises `Refused`."""
    if claim.metadata.uid != asked.uid:
        raise Refused(f"partage: claim {asked.name} is another one by now; delete the pod to have it made again")
    if claim.status.allocation is None:
        raise Refused(f"partage: claim {asked.name} is not allocated")
    devices = claim.status.allocation.devices
    mine = [each for each in devices.results if each.driver == DRIVER and each.pool == pool]
    if not 0 < len(mine) <= MOST_RESULTS:
        raise Refused(f"partage: claim {asked.name} has {len(mine)} devices here; allowed: 1 to {MOST_RESULTS}")
    known = dict(_devices(part, cuts))
    return tuple(_share(each, devices.config, known) for each in mine)


def _devices(part: GpuPart, cuts: Cuts) -> Iterator[tuple[str, tuple[Card, Part | None]]]:
    """Devices by name; a card that is handed out in parts appears only as its parts."""
    for card in part.cards:
        if card.pool == "dra":
            pieces = cuts.of(card)
            yield from ((piece.device(card.id), (card, piece)) for piece in pieces)
            if not pieces:
                yield device_name(card.id), (card, None)


def _share(result: _Result, configs: tuple[_Config, ...], known: Mapping[str, tuple[Card, Part | None]]) -> DeviceShare:
    card, piece = known.get(result.device, (None, None))
    if card is None:
        raise Refused(f"partage: device {result.device:.80} is not on this node, or not in its pool dra any more")
    if card.is_lost:
        raise Refused(f"partage: device {result.device} is lost; delete the pod to move it")
    if card.cause == HealthCause.NATIVE:
        raise Refused(f"partage: device {result.device} is not free: {card.condition}; kubelet tries again")
    return DeviceShare(
        request=result.request,
        pool=result.pool,
        device=result.device,
        share_id=result.share_id,
        card=card,
        grant=None if result.admin_access else _grant(result, configs, card, piece),
    )


def _grant(result: _Result, configs: tuple[_Config, ...], card: Card, piece: Part | None) -> GpuGrant:
    if piece is None:
        share = _consumed(result, SHARE, WHOLE_MILLI)
        memory = _consumed(result, MEMORY, card.memory_bytes)
    else:
        share, memory = piece.share_milli, piece.memory_bytes(card)
    limit = ceiling(read_share_config(raw) for raw in _parameters(result.request, configs))
    if limit < share:
        raise Refused(
            f"partage: request {result.request} consumes a share of {share} with a limit of {limit} milli; "
            "allowed: a limit that is not below the share"
        )
    return GpuGrant(card=card.id, share_milli=share, limit_milli=limit, memory_bytes=memory)


def _consumed(result: _Result, name: str, largest: int) -> int:
    said = result.consumed_capacity.get(name)
    where = f"{result.request}.consumedCapacity.{name}"
    if said is None:
        raise DecodeError("claim", path=where, value="absent", allowed="a quantity; was the claim allocated by name?")
    return parse_whole_quantity(said, path=where, largest=largest)


def _parameters(request: str, configs: tuple[_Config, ...]) -> Iterator[msgspec.Raw]:
    """All parameters that apply to a request, from its class and from the claim."""
    for each in configs:
        if each.opaque and each.opaque.driver == DRIVER and (not each.requests or _names(request, each.requests)):
            yield each.opaque.parameters


def _names(request: str, requests: tuple[str, ...]) -> bool:
    """Whether a request is listed; `main/alternative` is also covered by `main`."""
    return request in requests or request.partition("/")[0] in requests
