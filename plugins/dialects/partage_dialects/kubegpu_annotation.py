"""The annotations of KubeGPU and KubeDevice, which carry the same object with other names for resources.

Only what users write is read. What KubeGPU's scheduler writes (`nodename`, `devrequests`, `allocatefrom`) is known and
left aside, as KubeGPU does with what users put there; so is `scorer`, since ours chooses cards by its own policies.
`kubegpu_answer` writes `nodename` and `allocatefrom`, where that is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta, Struct, field

from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import Refused
from partage_plugins.vocabulary.limits import MAX_CONTAINERS, Bytes

KUBEGPU: Final = "pod.alpha/DeviceInformation"
KUBEDEVICE: Final = "KubeDevice/DeviceInfo"
_MOST_RESOURCES: Final = 2_048

Amounts = Annotated[dict[str, Bytes], Meta(max_length=_MOST_RESOURCES)]


class ContainerInfo(Struct, frozen=True, forbid_unknown_fields=True):
    """One container; a field of another name is an error, or a card might be lost by a letter."""

    requests: Amounts | None = None
    devrequests: Any = None
    allocatefrom: Any = None
    scorer: Any = None


Containers = Annotated[dict[str, ContainerInfo], Meta(max_length=MAX_CONTAINERS)]


class PodInfo(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole annotation, as its authors name it."""

    pod_name: Any = field(name="podname", default=None)
    node_name: Any = field(name="nodename", default=None)
    requests: Amounts | None = None
    init: Containers | None = field(name="initcontainer", default=None)
    running: Containers | None = field(name="runningcontainer", default=None)


class Words(NamedTuple):
    """What one of the two systems calls things."""

    prefix: str
    """Of paths."""
    number: str
    topology: str


WORDS: Final[Mapping[str, Words]] = {
    KUBEGPU: Words("alpha/grpresource", "alpha.gpu/numgpu", "alpha.gpu/gpu-generate-topology"),
    KUBEDEVICE: Words("resource/group", "nvidia.com/gpu", "gpu/gpu-generate-topology"),
}
_READERS: Final = {key: Reader(key, PodInfo) for key in WORDS}


def read_annotation(annotations: Mapping[str, str]) -> tuple[str, PodInfo] | None:
    """Which of the two is there, and what it says; None where neither is."""
    found = [key for key in WORDS if key in annotations]
    if len(found) > 1:
        raise Refused(f"this pod has both {' and '.join(found)}; use one of them")
    return (found[0], _READERS[found[0]].read(annotations[found[0]])) if found else None
