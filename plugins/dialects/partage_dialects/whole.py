"""Whole cards by the resource of NVIDIA's device plugin, `nvidia.com/gpu`, if `PARTAGE_NVIDIA_GPU` is `whole`.

As with the device plugin, each container gets that many cards of its own; init containers reuse what others will have.
With any other setting this dialect reads nothing: by default, kubelet and its device plugin handle the resource.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from partage_dialects.kubegpu_annotation import KUBEDEVICE
from partage_dialects.settings import NVIDIA_GPU as SETTING
from partage_dialects.settings import settings_from
from partage_plugins.api.gpu import GPU, GpuRequest
from partage_plugins.api.limits import MAX_CARDS, WHOLE_MILLI
from partage_plugins.api.names import ContainerName, Kind
from partage_plugins.api.pods import Pod, PodContainer
from partage_plugins.api.topology import Bundle
from partage_plugins.api.words import DialectWords
from partage_plugins.codecs.quantity import parse_quantity, parse_whole_quantity
from partage_plugins.errors import DecodeError
from partage_plugins.hooks import hookimpl

NVIDIA_GPU: Final = "nvidia.com/gpu"
Asks: TypeAlias = Mapping[ContainerName, Mapping[Kind, object]]


class WholeCards:
    def __init__(self) -> None:
        """An invalid setting keeps the scheduler from starting."""
        reader = settings_from(os.environ).nvidia_gpu
        self._reads, self._is_read = reader == "whole", reader != "kubelet"

    @hookimpl
    def partage_requests(self, pod: Pod) -> Asks | None:
        """Pods with KubeDevice's annotation are left to its dialect, which reads this resource too."""
        if not self._reads or KUBEDEVICE in pod.annotations:
            return None
        numbers = {container.name: cards_of(container) for container in pod.containers}
        return {name: {GPU.name: whole_cards(number)} for name, number in numbers.items() if number} or None

    @hookimpl
    def partage_words(self) -> Sequence[DialectWords]:
        return (
            DialectWords(
                system="NVIDIA's device plugin",
                where="limits",
                asking=frozenset((NVIDIA_GPU,)),
                prefixes=(NVIDIA_GPU,),
                is_read=self._is_read,
                remedy=f"Cards of kubelet's are handed out by a device plugin; partage reads {NVIDIA_GPU} where the "
                f"operator sets {SETTING} (the chart's nvidiaGpu) to whole or hami",
            ),
        )

    @hookimpl
    def partage_resources(self) -> Sequence[str]:
        return (NVIDIA_GPU,) if self._reads else ()


def cards_of(container: PodContainer) -> int:
    """The number in the container's limits; requests must be equal or absent, as Kubernetes requires."""
    if NVIDIA_GPU not in container.limits and NVIDIA_GPU not in container.requests:
        return 0
    path = f"containers.{container.name}"
    number = parse_whole_quantity(
        container.limits.get(NVIDIA_GPU, "0"), path=f"{path}.limits[{NVIDIA_GPU}]", largest=MAX_CARDS
    )
    wanted, where = container.requests.get(NVIDIA_GPU), f"{path}.requests[{NVIDIA_GPU}]"
    if wanted is not None and parse_quantity(wanted, path=where) != number:
        raise DecodeError("request", path=where, value=repr(wanted), allowed="the same amount as in limits")
    return number


def whole_cards(number: int, *, bundles: tuple[Bundle, ...] = (), least_card_bytes: int = 0) -> GpuRequest:
    """Whole cards, with all their share and memory."""
    return GpuRequest(count=number, share_milli=WHOLE_MILLI, bundles=bundles, least_card_bytes=least_card_bytes)
