"""The gRPC services that kubelet calls: each request is decoded, passed on as types, and answered.

An error of one claim is reported in that claim's result; kubelet shows its text to the pod's owner.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

import structlog
from grpclib.const import Cardinality, Handler
from msgspec import Struct

from partage_dra.kubelet import messages
from partage_dra.slices import Device
from partage_plugins.api.claims import DRIVER, ClaimRecord, ClaimRef, ClaimUid
from partage_plugins.api.names import Namespace
from partage_plugins.errors import PartageError

_TYPE: Final = b"DRAPlugin"
_VERSIONS: Final = (b"v1.DRAPlugin", b"v1.DRAResourceHealth", b"v1alpha1.DRAResourceHealth")
_HEALTH_CHECKED_S: Final = 60
"""After this long without a report, kubelet considers a device's health unknown."""
_HEALTHY: Final = 1
_UNHEALTHY: Final = 2
_DEFECT: Final = b"partage: partage-dra met a defect of its own on this claim; its log has more. Please report it"
_log = structlog.get_logger()

Stream = Any
"""A grpclib call, whose message types are created at run time."""


class Registration:
    """Tells kubelet the driver's endpoint."""

    def __init__(self, endpoint: str, *, registered: Callable[[], None]) -> None:
        """`registered` is called whenever kubelet has registered the driver."""
        self._endpoint, self._registered = endpoint, registered

    def __mapping__(self) -> dict[str, Handler]:
        service = "/pluginregistration.Registration/"
        info, status = messages.InfoRequest, messages.RegistrationStatus
        return {
            f"{service}GetInfo": _unary(self._info, info, messages.PluginInfo),
            f"{service}NotifyRegistrationStatus": _unary(self._notified, status, messages.RegistrationStatusResponse),
        }

    async def _info(self, stream: Stream) -> None:
        await stream.recv_message()
        answer: Any = messages.PluginInfo(type=_TYPE, name=DRIVER.encode(), endpoint=self._endpoint.encode())
        answer.supported_versions.extend(_VERSIONS)
        await stream.send_message(answer)

    async def _notified(self, stream: Stream) -> None:
        status = await stream.recv_message()
        if status.plugin_registered:
            _log.info("kubelet has registered the driver")
            self._registered()
        else:
            _log.error("kubelet did not register the driver", why=_text(status.error))
        await stream.send_message(messages.RegistrationStatusResponse())


class Claims(Protocol):
    """Prepares and releases claims; both calls may be repeated, and raise expected errors."""

    async def prepare(self, claim: ClaimRef) -> ClaimRecord: ...

    async def release(self, claim: ClaimRef) -> None: ...


class Preparation:
    def __init__(self, claims: Claims) -> None:
        self._claims = claims

    def __mapping__(self) -> dict[str, Handler]:
        service = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
        asked = messages.ClaimsRequest
        return {
            f"{service}NodePrepareResources": _unary(self._prepare, asked, messages.PrepareResponse),
            f"{service}NodeUnprepareResources": _unary(self._unprepare, asked, messages.UnprepareResponse),
        }

    async def _prepare(self, stream: Stream) -> None:
        request, answer = await stream.recv_message(), _message(messages.PrepareResponse)
        for claim in map(_claim, request.claims):
            result = _entry(answer, claim)
            result.error = await _tried(claim, "a claim is not prepared", self._fill(result, claim))
        await stream.send_message(answer)

    async def _fill(self, result: Any, claim: ClaimRef) -> None:  # noqa: ANN401  made at run time
        record = await self._claims.prepare(claim)
        for device in record.devices:
            told = result.devices.add(pool_name=device.pool.encode(), device_name=device.device.encode())
            told.request_names.append(device.request.encode())
            told.cdi_device_ids.extend(name.encode() for name in record.cdi)
            if device.share_id is not None:
                told.share_id = device.share_id.encode()

    async def _unprepare(self, stream: Stream) -> None:
        request, answer = await stream.recv_message(), _message(messages.UnprepareResponse)
        for claim in map(_claim, request.claims):
            _entry(answer, claim).error = await _tried(claim, "a claim is not let go of", self._claims.release(claim))
        await stream.send_message(answer)


async def _tried(claim: ClaimRef, what: str, work: Awaitable[None]) -> bytes:
    """Await `work`; returns the error's text for the pod's owner, or empty. Kubelet retries after an error."""
    about = {"namespace": claim.namespace, "claim": claim.name, "uid": claim.uid}
    try:
        await work
    except (PartageError, OSError) as error:
        _log.warning(what, why=str(error), **about)
        return str(error).encode()
    except Exception:  # noqa: BLE001  a defect costs its claim, whose owner must hear of it
        _log.exception("unexpected error; this is a defect, please report it", **about)
        return _DEFECT
    return b""


class DeviceState(Struct, frozen=True):
    """A device and its fault; an empty text means none."""

    device: Device
    why: str = ""


class Health:
    """Reports device health to kubelet, for the pods' status; it evicts nothing."""

    def __init__(self, pool: str, states: Callable[[], AsyncIterator[Sequence[DeviceState]]]) -> None:
        """`states` yields all devices at once, and again on a change or when a repeat is due."""
        self._pool, self._states = pool, states

    def __mapping__(self) -> dict[str, Handler]:
        handler = Handler(self._watch, Cardinality.UNARY_STREAM, messages.HealthRequest, messages.HealthResponse)
        return {f"/{version}.DRAResourceHealth/NodeWatchResources": handler for version in ("v1", "v1alpha1")}

    async def _watch(self, stream: Stream) -> None:
        await stream.recv_message()
        async for states in self._states():
            answer = _message(messages.HealthResponse)
            for state in states:
                found = answer.devices.add(
                    health=_UNHEALTHY if state.why else _HEALTHY,
                    last_updated_time=int(time.time()),
                    health_check_timeout_seconds=_HEALTH_CHECKED_S,
                    message=state.why.encode(),
                )
                found.device.pool_name, found.device.device_name = self._pool.encode(), state.device.name.encode()
            await stream.send_message(answer)


def _unary(call: Callable[[Stream], Any], asked: type, answered: type) -> Handler:
    return Handler(call, Cardinality.UNARY_UNARY, asked, answered)


def _message(type_: Callable[[], Any]) -> Any:  # noqa: ANN401  of a class made at run time
    return type_()


def _entry(answer: Any, claim: ClaimRef) -> Any:  # noqa: ANN401  made at run time
    """The claim's result in a response about several claims."""
    entry = answer.claims.add(key=claim.uid.encode())
    entry.value.SetInParent()
    return entry.value


def _claim(said: Any) -> ClaimRef:  # noqa: ANN401  as above
    return ClaimRef(Namespace(_text(said.namespace)), _text(said.name), ClaimUid(_text(said.uid)))


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
