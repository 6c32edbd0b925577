"""The resize annotation of a bound pod, and the data passed to its node about resized allocations. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta, Struct, field

from partage_plugins.api import keys
from partage_plugins.api.limits import MAX_ANNOTATION_BYTES, MAX_CARDS, MAX_CONTAINERS, WHOLE_MILLI
from partage_plugins.api.names import ContainerName, ContainerNameText, Namespace, PodName, PodUid
from partage_plugins.api.pods import PodRef
from partage_plugins.codecs.decoder import Reader
from partage_plugins.codecs.quantity import parse_bytes
from partage_plugins.errors import DecodeError

WHAT: Final = "resize"
_MOST_BYTES: Final = 2**62


class Wish(Struct, frozen=True):
    """New totals over a container's cards; None: unchanged."""

    share_milli: int | None = None
    memory_bytes: int | None = None


class _Said(Struct, frozen=True, forbid_unknown_fields=True):
    milli: Annotated[int, Meta(ge=0, le=MAX_CARDS * WHOLE_MILLI)] | None = field(name="gpu-milli", default=None)
    memory: Annotated[str, Meta(max_length=96)] | None = field(name="gpu-memory", default=None)


_Wishes = dict[ContainerNameText, _Said]
_READER: Final[Reader[_Wishes]] = Reader(WHAT, Annotated[_Wishes, Meta(min_length=1, max_length=MAX_CONTAINERS)])  # type: ignore[arg-type]  # an annotated type is no class


def read_resize(text: str) -> Mapping[ContainerName, Wish]:
    """The requested amounts, by container; raises `DecodeError`."""
    found = dict[ContainerName, Wish]()
    for name, said in _READER.read(text).items():
        at = f"$.{name}"
        if said.milli is None and said.memory is None:
            raise DecodeError(WHAT, path=at, value="{}", allowed="gpu-milli, gpu-memory, or both")
        memory = None if said.memory is None else parse_bytes(said.memory, path=f"{at}.gpu-memory", largest=_MOST_BYTES)
        found[name] = Wish(said.milli, memory)
    return found


def read_wait(annotations: Mapping[str, str]) -> bool:
    """Whether the resize waits until it fits; raises `DecodeError`."""
    text = annotations.get(keys.RESIZE_WAIT, "no")
    if text not in {"yes", "no"}:
        raise DecodeError(WHAT, path=keys.RESIZE_WAIT, value=repr(text), allowed="yes or no")
    return text == "yes"


GRANTED: Final = "Granted"
REFUSED: Final = "Refused"
WAITS: Final = "Waits"
"""Reasons of the condition that reports the outcome of a resize."""


class ResizedPod(Struct, frozen=True, kw_only=True):
    """A pod whose allocation changed while it ran."""

    namespace: Namespace
    name: PodName
    gen: int
    """Generation of the pod's current allocation."""


READ_RESIZED_PODS: Final = Reader("resized pods", dict[PodUid, ResizedPod])
"""Annotation on a node's Lease: its resized pods by uid."""


class NewAllocation(Struct, frozen=True, kw_only=True):
    """A pod's allocation as stored in the API server, passed to crishim, which trusts only its signature."""

    pod: PodRef
    allocation: Annotated[str, Meta(max_length=MAX_ANNOTATION_BYTES)]
    signature: Annotated[str, Meta(max_length=256)]


MOST_FILE_BYTES: Final = 2 * MAX_ANNOTATION_BYTES
"""Size of such a file: quotes in the text take two bytes."""
