"""The part of the container runtime interface that partage needs, with a small client without grpcio.

`schema` has the few messages and fields that we read; `create_request` decodes a CreateContainer request into a frozen
view and writes changes into it; `client` makes unary calls over a unix socket; `runtime` and `podresources` are our
typed calls to containerd and kubelet; `runtime_config` is containerd's configuration as it reports it; `checkpoint` is
kubelet's record of devices.

Protobuf is used in no other package.
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
