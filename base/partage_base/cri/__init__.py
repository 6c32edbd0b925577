"""The container runtime interface as partage needs it, and a small client for it without grpcio.

`schema` has the few messages and fields that we look at; `create_request` turns a CreateContainer request into a frozen
view and writes changes into it; `client` asks one question over a unix socket; `runtime` and `podresources` are
what we ask containerd and kubelet, with typed answers; `runtime_config` is how containerd says that it is set up;
`checkpoint` is what kubelet wrote down.
Protobuf stays in this room.
"""

from partage_base.cri.checkpoint import CHECKPOINT, RecordedUse, recorded_uses
from partage_base.cri.client import UnaryClient
from partage_base.cri.create_request import (
    Changes,
    CreateRequest,
    RequestDevice,
    RequestMount,
    read_create,
    rewritten,
)
from partage_base.cri.errors import CriError, MessageWrong, PeerAway, PeerRefused, PeerSlow
from partage_base.cri.podresources import GivenDevice, PodResources, ServedContainer
from partage_base.cri.runtime import ListedContainer, ListedImage, ListedSandbox, RuntimeClient
from partage_base.cri.runtime_config import OUR_SPECS, RuntimeConfig

__all__ = [
    "CHECKPOINT",
    "OUR_SPECS",
    "Changes",
    "CreateRequest",
    "CriError",
    "GivenDevice",
    "ListedContainer",
    "ListedImage",
    "ListedSandbox",
    "MessageWrong",
    "PeerAway",
    "PeerRefused",
    "PeerSlow",
    "PodResources",
    "RecordedUse",
    "RequestDevice",
    "RequestMount",
    "RuntimeClient",
    "RuntimeConfig",
    "ServedContainer",
    "UnaryClient",
    "read_create",
    "recorded_uses",
    "rewritten",
]
