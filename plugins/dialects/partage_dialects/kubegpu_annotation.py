"""The annotations of KubeGPU and KubeDevice: the same object, with different resource names.

Only what users write is read. Fields that KubeGPU's scheduler writes (`nodename`, `devrequests`, `allocatefrom`) are
known and ignored, as KubeGPU ignores users' values in them; so is `scorer`, since ours chooses cards by its own
policies. `kubegpu_answer` writes `nodename` and `allocatefrom` if the mirror is enabled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta, Struct, field

from partage_plugins.api.limits import MAX_CONTAINERS, Bytes
from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import Refused

KUBEGPU: Final = "pod.alpha/DeviceInformation"
KUBEDEVICE: Final = "KubeDevice/DeviceInfo"
_MOST_RESOURCES: Final = 2_048

Amounts = Annotated[dict[str, Bytes], Meta(max_length=_MOST_RESOURCES)]


class ContainerInfo(Struct, frozen=True, forbid_unknown_fields=True):
    """One container; an unknown field is an error, since a misspelt one could lose a card."""

    requests: Amounts | None = None
    devrequests: Any = None
    allocatefrom: Any = None
    scorer: Any = None


Containers = Annotated[dict[str, ContainerInfo], Meta(max_length=MAX_CONTAINERS)]


class PodInfo(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole annotation, with its authors' names."""

    pod_name: Any = field(name="podname", default=None)
    node_name: Any = field(name="nodename", default=None)
    requests: Amounts | None = None
    init: Containers | None = field(name="initcontainer", default=None)
    running: Containers | None = field(name="runningcontainer", default=None)


class Words(NamedTuple):
    """One system's names of keys and resources."""

    prefix: str
    """Prefix of paths."""
    number: str
    topology: str


WORDS: Final[Mapping[str, Words]] = {
    KUBEGPU: Words("alpha/grpresource", "alpha.gpu/numgpu", "alpha.gpu/gpu-generate-topology"),
    KUBEDEVICE: Words("resource/group", "nvidia.com/gpu", "gpu/gpu-generate-topology"),
}
_READERS: Final = {key: Reader(key, PodInfo) for key in WORDS}


def read_annotation(annotations: Mapping[str, str]) -> tuple[str, PodInfo] | None:
    """The annotation that the pod has, and its content; None if it has neither."""
    found = [key for key in WORDS if key in annotations]
    if len(found) > 1:
        raise Refused(f"this pod has both {' and '.join(found)}; use one of them")
    return (found[0], _READERS[found[0]].read(annotations[found[0]])) if found else None
