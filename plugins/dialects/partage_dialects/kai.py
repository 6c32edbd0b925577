"""KAI and Run:ai: `gpu-fraction`, `gpu-memory` and related keys, as annotations of a pod.

One container gets the cards: the first, the one in `gpu-fraction-container-name`, or the one named in
`nvidia.com/container.<name>.gpu-memory.request`. A fraction is of a card's memory and, as in Run:ai, of its time; an
amount of memory comes with the time that others leave, as in KAI.

As in KAI: an empty value counts as missing; a limit alone is also the request; nothing is allowed with
`nvidia.com/gpu`. Differences: a limit above the request is refused, since memory here is either promised or not
available; so is concurrent sharing of SMs. Annotations that KAI's binder writes are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from partage_dialects.amounts import milli, read_decimal, read_whole, refused
from partage_dialects.whole import NVIDIA_GPU
from partage_plugins.api.gpu import GPU, MIB, GpuRequest
from partage_plugins.api.limits import MAX_CARDS
from partage_plugins.api.names import ContainerName, Kind
from partage_plugins.api.pods import Pod
from partage_plugins.api.words import DialectWords
from partage_plugins.codecs.quantity import parse_bytes
from partage_plugins.hooks import hookimpl

FRACTION: Final = "gpu-fraction"
MEMORY: Final = "gpu-memory"
NUMBER: Final = "gpu-fraction-num-devices"
CONTAINER: Final = "gpu-fraction-container-name"
MPS: Final = "mps"
MODE: Final = "kai.scheduler/gpu-compute-sharing-mode"
FRACTION_LIMITS: Final = (f"{FRACTION}.limit", f"{FRACTION}-limit")
MEMORY_LIMITS: Final = (f"{MEMORY}.limit", f"{MEMORY}-limit")
"""KAI's, and Run:ai's."""
POD_KEYS: Final = frozenset((FRACTION, MEMORY, NUMBER, CONTAINER, *FRACTION_LIMITS, *MEMORY_LIMITS))
"""Keys with which a pod makes a request, or intends to."""
PREFIX: Final = "nvidia.com/container."
"""Followed by a container's name, a dot, and one of these."""
REQUEST, LIMIT, OWN_MODE = "gpu-memory.request", "gpu-memory.limit", "gpu-compute.mode"
_READ: Final = (REQUEST, LIMIT, OWN_MODE)
_WRITTEN: Final = ("gpus.devices", "gpu-compute.portion")
_SLICES: Final = "time-slicing"
_MOST_BYTES: Final = 2**62
_PART: Final = f"a number above 0 and below 1, such as 0.5; whole cards are {NVIDIA_GPU}"
_MIBS: Final = "MiB, a whole number above 0, such as 4096"
_FEW: Final = f"from 1 to {MAX_CARDS}"


class KaiDialect:
    @hookimpl
    def partage_words(self) -> Sequence[DialectWords]:
        return (
            DialectWords(
                system="KAI",
                where="annotations",
                asking=POD_KEYS,
                beside=frozenset((MODE,)),
                known=frozenset(("runai-gpu-group",)),
                prefixes=(PREFIX, "kai.scheduler/container.", "kai.scheduler/gpu-"),
                remedy=f"A pod asks by the annotations {FRACTION} or {MEMORY}",
            ),
            DialectWords(
                system="Run:ai",
                where="variables",
                families=("RUNAI_GPU_",),
                is_read=False,
                remedy=f"Ask by {FRACTION} or {MEMORY} for all that the container needs: no memory is lent above that",
            ),
        )

    @hookimpl
    def partage_requests(self, pod: Pod) -> Mapping[ContainerName, Mapping[Kind, object]] | None:
        said = pod.annotations
        if POD_KEYS.isdisjoint(said) and not any(key.startswith(PREFIX) for key in said):
            return None
        said = {key: text for key, text in said.items() if text}
        wanted = _wanted(said, own := list(_own(said)))
        if wanted is None:
            _require_nothing(said, own)
            return None
        _require_alone(pod)
        return {_container(pod, said, own): {GPU.name: wanted}}


class _Own(NamedTuple):
    """A key that contains the name of a container."""

    key: str
    container: str
    word: str


class _Amount(NamedTuple):
    key: str
    number: int


def _own(said: Mapping[str, str]) -> Iterator[_Own]:
    for key in said:
        if key.startswith(PREFIX):
            container, _, word = key.removeprefix(PREFIX).partition(".")
            if word not in _READ and word not in _WRITTEN:
                raise refused("annotations", key, f"{PREFIX}<name>. with {', '.join(_READ)}")
            if word in _READ:
                yield _Own(key, container, word)


def _wanted(said: Mapping[str, str], own: Sequence[_Own]) -> GpuRequest | None:
    """One container's request; None if there is none."""
    fraction, memory = _agreed(said, list(_fractions(said))), _agreed(said, list(_memories(said, own)))
    if fraction is None and memory is None:
        return None
    if fraction is not None and memory is not None:
        raise refused(fraction.key, said[fraction.key], f"either this or {memory.key}")
    _require_slices(said, own)
    count = read_whole(said, NUMBER, allowed=_FEW, largest=MAX_CARDS) if NUMBER in said else 1
    if not count:
        raise refused(NUMBER, said[NUMBER], _FEW)
    if memory is not None:
        return GpuRequest(count=count, memory_bytes=memory.number, spare_share=True)
    return GpuRequest(count=count, share_milli=fraction.number if fraction else 0)


def _fractions(said: Mapping[str, str]) -> Iterator[_Amount]:
    for key in (FRACTION, *FRACTION_LIMITS):
        if key in said:
            part = read_decimal(said, key, allowed=_PART, largest=1)
            if key == FRACTION and not 0 < part < 1:
                raise refused(key, said[key], _PART)
            yield _Amount(key, milli(part))


def _memories(said: Mapping[str, str], own: Sequence[_Own]) -> Iterator[_Amount]:
    """Requests come before their limits."""
    if MEMORY in said:
        mib = read_whole(said, MEMORY, allowed=_MIBS, largest=_MOST_BYTES // MIB)
        if not mib:
            raise refused(MEMORY, said[MEMORY], _MIBS)
        yield _Amount(MEMORY, mib * MIB)
    for key in (
        *(each.key for each in own if each.word == REQUEST),
        *(each.key for each in own if each.word == LIMIT),
        *(key for key in MEMORY_LIMITS if key in said),
    ):
        number = parse_bytes(said[key], path=key, largest=_MOST_BYTES)
        if not number:
            raise refused(key, said[key], "an amount of memory above 0, such as 4Gi")
        yield _Amount(key, number)


def _agreed(said: Mapping[str, str], amounts: Sequence[_Amount]) -> _Amount | None:
    """Requires all amounts to be equal: memory above a request can't be lent here."""
    for other in amounts[1:]:
        first = amounts[0]
        if other.number != first.number:
            as_first = f"as much as {first.key}, which is {said[first.key]}: no memory is lent above what is asked for"
            raise refused(other.key, said[other.key], as_first)
    return amounts[0] if amounts else None


def _require_slices(said: Mapping[str, str], own: Sequence[_Own]) -> None:
    """Only time slicing is supported."""
    for key in (MODE, *(each.key for each in own if each.word == OWN_MODE)):
        if said.get(key, _SLICES) != _SLICES:
            raise refused(key, said[key], _SLICES)
    if said.get(MPS) == "true":
        raise refused(MPS, said[MPS], "false: containers have a card in turns")


def _require_nothing(said: Mapping[str, str], own: Sequence[_Own]) -> None:
    """Refuses keys for the number of cards or the container if there is no request that they could refer to."""
    for key in (NUMBER, CONTAINER, *(each.key for each in own)):
        if key in said:
            raise refused(key, said[key], f"beside {FRACTION} or {MEMORY}")


def _require_alone(pod: Pod) -> None:
    for container in pod.containers:
        if NVIDIA_GPU in container.limits:
            at = f"containers.{container.name}.limits[{NVIDIA_GPU}]"
            raise refused(at, container.limits[NVIDIA_GPU], "either whole cards or a part of one")


def _container(pod: Pod, said: Mapping[str, str], own: Sequence[_Own]) -> ContainerName:
    keys = {each.container: each.key for each in own}
    if CONTAINER in said:
        keys.setdefault(said[CONTAINER], CONTAINER)
    if len(keys) > 1:
        first, other = list(keys)[:2]
        raise refused(keys[other], said[keys[other]], f"for one container of a pod, and {keys[first]} is for {first}")
    names = [container.name for container in pod.containers]
    apps = [container.name for container in pod.containers if container.role == "app"]
    name, key = next(iter(keys.items()), (apps[0] if apps else "", CONTAINER))
    if name not in names:
        raise refused(key, said.get(key), f"for a container of the pod: {', '.join(names)}")
    return ContainerName(name)
