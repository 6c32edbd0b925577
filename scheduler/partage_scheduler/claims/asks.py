"""What a claim requests of our cards, and the configuration that is written with its allocation. Pure.

Anything unsupported rejects the claim with a message for its author: amounts by other names, parameters with unknown
fields, constraints, alternatives. An amount that a request does not name is all of a card, as in the driver's devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import ceil
from typing import Any, Final

import msgspec
from msgspec import Struct

from partage_plugins.api import GpuRequest
from partage_plugins.api.claim_devices import MEMORY, SHARE
from partage_plugins.api.claims import DRIVER
from partage_plugins.api.gpu import MIB
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.codecs.quantity import parse_quantity
from partage_plugins.codecs.share_config import ShareConfig, ceiling, read_share_config
from partage_plugins.errors import DecodeError, Refused
from partage_scheduler.claims.selectors import Chosen, both, chosen_by
from partage_scheduler.objects import ApiDeviceClass, ApiResourceClaim
from partage_scheduler.objects.claims import Config, DeviceRequest, Exactly

MOST_RESULTS: Final = 32
"""Limit of devices per claim, as in the API server."""
_EXACT: Final = frozenset(("", "ExactCount"))
_MOST_BYTES: Final = 1 << 60


class AskedClaim(Struct, frozen=True):
    """A parsed claim."""

    requests: tuple[tuple[str, GpuRequest], ...]
    config: tuple[Mapping[str, Any], ...] = ()
    """As in an allocation: configuration of classes before that of the claim."""


def asked_of(claim: ApiResourceClaim, classes: Mapping[str, ApiDeviceClass]) -> AskedClaim:
    """Parses a claim; raises `Refused` for a malformed or unsupported one."""
    devices = claim.spec.devices
    if devices.constraints:
        raise Refused(f"claim {claim.name} has constraints, which this scheduler does not read: make it several claims")
    if not devices.requests:
        raise Refused(f"claim {claim.name} asks for no device")
    found: list[tuple[str, GpuRequest]] = []
    written: list[Mapping[str, Any]] = []
    for request in devices.requests:
        exactly = _exactly(claim.name, request)
        class_ = _class(claim.name, exactly, classes)
        mine = [each for each in devices.config if not each.requests or request.name in each.requests]
        found.append((request.name, _request(f"claim {claim.name}, request {request.name}", exactly, class_, mine)))
        written += [_written("FromClass", (request.name,), each) for each in class_.spec.config]
    if (total := sum(each.count for _, each in found)) > MOST_RESULTS:
        raise Refused(f"claim {claim.name} asks for {total} devices; allowed: at most {MOST_RESULTS}")
    written += [_written("FromClaim", each.requests, each) for each in devices.config]
    return AskedClaim(tuple(found), tuple(written))


def _exactly(claim: str, request: DeviceRequest) -> Exactly:
    exactly = request.exactly
    if exactly is None:
        raise Refused(f"claim {claim}, request {request.name} names alternatives, which this scheduler does not read")
    if exactly.admin_access:
        raise Refused(f"claim {claim}, request {request.name} is for administrators: bind its pod by spec.nodeName")
    if exactly.allocation_mode not in _EXACT:
        raise Refused(f"claim {claim}, request {request.name} has {exactly.allocation_mode[:40]}; allowed: ExactCount")
    if not 0 <= exactly.count <= MOST_RESULTS:
        raise Refused(f"claim {claim}, request {request.name} counts {exactly.count}; allowed: 1 to {MOST_RESULTS}")
    return exactly


def _class(claim: str, exactly: Exactly, classes: Mapping[str, ApiDeviceClass]) -> ApiDeviceClass:
    name = exactly.device_class_name
    if (found := classes.get(name)) is None:
        raise Refused(f'deviceclass "{name[:253]}" not found, for which claim {claim} asks')
    return found


def _request(of: str, exactly: Exactly, class_: ApiDeviceClass, config: Iterable[Config]) -> GpuRequest:
    name = f"deviceclass {class_.name}"
    chosen = both(chosen_by(class_.spec.selectors, name), chosen_by(exactly.selectors, of), of)
    if not chosen.is_ours:
        raise Refused(f'{name} does not say device.driver == "{DRIVER}", and this scheduler allocates no other devices')
    share, memory = _amounts(of, exactly)
    limit = ceiling((*_parameters(name, class_.spec.config), *_parameters(of, config)))
    if limit < share:
        raise Refused(f"{of} has a share of {share} and a limit of {limit} milli; allowed: a limit not below the share")
    return _of_amounts(exactly.count or 1, share, memory, limit, chosen)


def _of_amounts(count: int, share: int, memory: int | None, limit: int, chosen: Chosen) -> GpuRequest:
    return GpuRequest(
        count=count,
        share_milli=share,
        limit_milli=limit,
        memory_bytes=memory,
        memory_milli=WHOLE_MILLI if memory is None else None,
        models=() if chosen.model is None else (chosen.model,),
        cards=() if chosen.card is None else (chosen.card,),
        is_claim=True,
    )


def _amounts(of: str, exactly: Exactly) -> tuple[int, int | None]:
    """Share and bytes of each card, rounded up to the steps of the driver's devices."""
    said = {} if exactly.capacity is None else exactly.capacity.requests
    if unknown := sorted(said.keys() - {SHARE, MEMORY}):
        raise Refused(f"{of} asks for {unknown[0][:120]!r} of a card; allowed: {SHARE}, {MEMORY}")
    share = _number(of, SHARE, said[SHARE], WHOLE_MILLI) if SHARE in said else WHOLE_MILLI
    if MEMORY not in said:
        return share, None
    return share, max(1, -(-_number(of, MEMORY, said[MEMORY], _MOST_BYTES) // MIB)) * MIB


def _number(of: str, name: str, text: str, most: int) -> int:
    try:
        number = ceil(parse_quantity(text))
    except DecodeError:
        number = -1
    if not 0 <= number <= most:
        raise Refused(f"{of} asks for {text[:63]!r} of {name}; allowed: a quantity from 0 to {most}")
    return number


def _parameters(of: str, config: Iterable[Config]) -> Iterator[ShareConfig]:
    for each in config:
        if each.opaque is not None and each.opaque.driver == DRIVER:
            try:
                yield read_share_config(msgspec.json.encode(each.opaque.parameters))
            except DecodeError as error:
                raise Refused(f"{of}: {error}") from None


def _written(source: str, requests: tuple[str, ...], config: Config) -> Mapping[str, Any]:
    opaque = None if config.opaque is None else msgspec.to_builtins(config.opaque)
    return {"source": source, "requests": list(requests), "opaque": opaque}
