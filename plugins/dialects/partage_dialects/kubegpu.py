"""KubeGPU's and KubeDevice's requests: whole cards by number, and the groups in which they are close.

As in KubeGPU: the number of cards of a container is the larger of its number and the count of its paths; with
`gpu-generate-topology` 1 only the number counts, and the cards are as close as the cluster's best node allows. Init
containers reuse what others will have. Differences: anything that is not understood is refused, and enumerated
resources do not exist.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from partage_dialects.kubegpu_annotation import KUBEDEVICE, WORDS, ContainerInfo, PodInfo, Words, read_annotation
from partage_dialects.kubegpu_answer import answered
from partage_dialects.kubegpu_paths import NO_PATHS, read_paths, refused
from partage_dialects.settings import settings_from
from partage_dialects.whole import Asks, cards_of, whole_cards
from partage_plugins.api.allocation import Allocation
from partage_plugins.api.gpu import CLOSEST, GPU, GpuRequest
from partage_plugins.api.limits import MAX_CARDS
from partage_plugins.api.pods import Pod, PodContainer
from partage_plugins.api.topology import Bundle
from partage_plugins.api.words import DialectWords
from partage_plugins.errors import Refused
from partage_plugins.hooks import hookimpl

_Field: TypeAlias = tuple[str, Mapping[str, ContainerInfo]]


class KubeGpu:
    def __init__(self) -> None:
        """An invalid setting keeps the scheduler from starting."""
        self._reads_limits = settings_from(os.environ).nvidia_gpu == "whole"

    @hookimpl
    def partage_words(self) -> Sequence[DialectWords]:
        return (
            DialectWords(
                system="KubeGPU",
                where="annotations",
                asking=frozenset(WORDS),
                prefixes=("pod.alpha/", "KubeDevice/", "alpha.gpu/", "alpha/grpresource"),
                remedy=f"A pod asks by the annotation {' or '.join(WORDS)}",
            ),
        )

    @hookimpl
    def partage_requests(self, pod: Pod) -> Asks | None:
        found = read_annotation(pod.annotations)
        if found is None:
            return None
        annotation, info = found
        reads_limits = self._reads_limits and annotation == KUBEDEVICE
        asks = {
            said.container.name: {GPU.name: wanted}
            for said in _said(annotation, pod, info)
            if (wanted := _wanted(said, cards_of(said.container) if reads_limits else 0)) is not None
        }
        if not asks and annotation == KUBEDEVICE and not self._reads_limits:
            _require_a_number(pod, info)
        return asks or None

    @hookimpl
    def partage_mirror(self, pod: Pod, allocation: Allocation) -> Mapping[str, str] | None:
        """Written to the annotation with the request; a pod with limits alone has none."""
        found = read_annotation(pod.annotations)
        if found is None:
            return None
        key = found[0]
        return {key: answered(pod.annotations[key], WORDS[key], pod.containers, allocation)}


class _Said(NamedTuple):
    """The request of one container, and its place in the annotation."""

    container: PodContainer
    requests: Mapping[str, int]
    path: str
    words: Words
    is_closest: bool


def _said(annotation: str, pod: Pod, info: PodInfo) -> Iterator[_Said]:
    """The requests of each container of the pod; those of other names are refused."""
    words, fields = WORDS[annotation], _fields(info)
    _require_known(annotation, pod, fields)
    path = f"{annotation} $.requests"
    of_pod = _is_generated(info.requests or {}, words, path)
    for key in info.requests or ():
        if key != words.topology:
            raise refused(path, repr(key), words.topology)
    for container in pod.containers:
        field, infos = fields[container.role != "app"]
        requests = infos[container.name].requests if container.name in infos else None
        path = f"{annotation} $.{field}.{container.name}.requests"
        is_closest = _is_generated(requests or {}, words, path) or of_pod
        yield _Said(container, requests or {}, path, words, is_closest)


def _fields(info: PodInfo) -> tuple[_Field, _Field]:
    """The fields for app containers and for all others: sidecars are listed among the init containers."""
    return ("runningcontainer", info.running or {}), ("initcontainer", info.init or {})


def _require_known(annotation: str, pod: Pod, fields: tuple[_Field, _Field]) -> None:
    for is_init, (field, infos) in enumerate(fields):
        names = [container.name for container in pod.containers if (container.role != "app") == is_init]
        for name in infos:
            if name not in names:
                raise refused(f"{annotation} $.{field}", repr(name), f"containers of the pod: {', '.join(names)}")


def _is_generated(requests: Mapping[str, int], words: Words, path: str) -> bool:
    number = requests.get(words.topology, 0)
    if number not in {0, 1}:
        raise refused(f"{path}[{words.topology}]", str(number), "0 or 1")
    return number == 1


def _wanted(said: _Said, in_limits: int) -> GpuRequest | None:
    words = said.words
    number = max(said.requests.get(words.number, 0), in_limits)
    if number > MAX_CARDS:
        raise refused(f"{said.path}[{words.number}]", str(number), f"at most {MAX_CARDS}")
    others = {key: n for key, n in said.requests.items() if key not in {words.number, words.topology}}
    paths = read_paths(others, words.prefix, at=said.path) if others else NO_PATHS
    if said.is_closest:
        if paths.cards and not number:
            raise refused(said.path, "paths alone", f"{words.number} beside {words.topology} 1, which replaces paths")
        return whole_cards(number, bundles=(Bundle(CLOSEST, number),) if number > 1 else ()) if number else None
    count = max(number, paths.cards)
    if not count:
        return None
    return whole_cards(count, bundles=paths.bundles, least_card_bytes=paths.least_card_bytes)


def _require_a_number(pod: Pod, info: PodInfo) -> None:
    """Refuses a topology for cards that kubelet allocates."""
    words = WORDS[KUBEDEVICE]
    said = (info.requests or {}, *(one.requests or {} for one in (info.running or {}).values()))
    if any(each.get(words.topology) for each in said) and any(cards_of(container) for container in pod.containers):
        raise Refused(
            f"{KUBEDEVICE}: {words.topology} is asked for, and {words.number} in limits is kubelet's to hand out; say "
            f"{words.number} in the annotation, or have the operator set PARTAGE_NVIDIA_GPU to whole"
        )
