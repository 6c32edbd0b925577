"""Requests of pods, parsed once for all pods with the same content: most come from few templates.

Error messages quote the amount as it was typed, because the API server caps larger quantities at the maximum. For pods
applied with kubectl an annotation has the typed text; for others the message quotes the capped value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from partage_plugins.api import (
    BudgetUse,
    ContainerRequest,
    Gang,
    Namespace,
    Pod,
    PodName,
    PodRef,
    PodRequest,
    Resources,
)
from partage_plugins.cache import Cache, structure_bytes
from partage_plugins.codecs import read_gang
from partage_plugins.codecs.quantity import CAPPED
from partage_plugins.codecs.suspension import read_suspend
from partage_plugins.errors import DecodeError, Refused
from partage_scheduler.objects import ApiPod, seen
from partage_scheduler.predicates.memo import digest_of
from partage_scheduler.predicates.needs import needs

_MOST_BYTES: Final = 32 << 20
_TEXT: Final = msgspec.json.Encoder()
APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_AMOUNT: Final = re.compile(r"containers\.(?P<container>[^.\[\]]+)\.(?P<where>limits|requests)\[(?P<key>[^\]]+)\]")
_MEANS: Final = f"{CAPPED!r}, which stands for whatever is larger"


class _Known(NamedTuple):
    containers: tuple[ContainerRequest, ...]
    uses: tuple[BudgetUse, ...]
    gang: Gang | None
    needs: Resources


class RequestReader:
    """Reads requests; a dialect may use anything of a pod but its name and uid."""

    def __init__(self, read: Callable[[Pod], PodRequest]) -> None:
        """`read` calls the dialects, and raises an error on a malformed request."""
        self._ask = read
        self._known = Cache[bytes, _Known](_MOST_BYTES)

    def of(self, pod: ApiPod) -> PodRequest:
        """The pod's request for devices, CPU and memory.

        Raises errors of dialects, and one for a malformed gang or an unknown word about suspension. A pod that exceeds
        the size limits is rejected, because it was not decoded as a whole.
        """
        if pod.excess:
            raise Refused(pod.excess)
        said = _said_by(pod)
        key = digest_of(said)
        known = self._known.get(key)
        if known is None:
            known = self._read(pod)
            self._known.put(key, known, structure_bytes(len(said)))
        ref = PodRef(namespace=Namespace(pod.namespace), name=PodName(pod.name), uid=pod.uid)
        return PodRequest(pod=ref, containers=known.containers, uses=known.uses, gang=known.gang, needs=known.needs)

    def _read(self, pod: ApiPod) -> _Known:
        try:
            gang = read_gang(pod.namespace, pod.metadata.annotations, pod.metadata.labels)
            read_suspend(pod.metadata.annotations)
            asked = self._ask(seen(pod))
            return _Known(asked.containers, asked.uses, gang, needs(pod))
        except DecodeError as error:
            raise as_typed(error, pod) from None


def _said_by(pod: ApiPod) -> bytes:
    """Encodes everything that a request may depend on."""
    meta, spec = pod.metadata, pod.spec
    return _TEXT.encode(
        (
            meta.namespace,
            meta.labels,
            meta.annotations,
            spec.overhead,
            spec.init_containers,
            spec.containers,
            spec.resources,
        )
    )


def as_typed(error: DecodeError, pod: ApiPod) -> DecodeError:
    """The same error, or one with the typed amount if it quotes the capped maximum."""
    if error.value != repr(CAPPED):
        return error
    typed = _typed(pod.metadata.annotations.get(APPLIED, ""), error.path)
    value = _MEANS if typed is None else repr(typed)
    return DecodeError(error.what, path=error.path, value=value, allowed=error.allowed)


def _typed(applied: str, path: str) -> str | None:
    """The amount as it was typed; None if the annotation doesn't have it."""
    match = _AMOUNT.fullmatch(path)
    if match is None:
        return None
    try:
        found: Any = msgspec.json.decode(applied)
        spec = found["spec"]
        (amounts,) = [
            each["resources"][match["where"]]
            for each in (*spec.get("initContainers", ()), *spec["containers"])
            if each["name"] == match["container"]
        ]
        return str(amounts[match["key"]])
    except (msgspec.DecodeError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return None  # anybody may write that annotation
