"""CRI requests as kubelet sends them for a pod with an allocation. Pure.

Written by hand, since our own schema has only the fields that crishim reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.cri import Changes, rewritten
from partage_plugins.api import GPU, Allocation, ContainerAllocation, ContainerName, GpuGrant, NodeName, PodUid
from partage_plugins.api.keys import ALLOCATION, CONTAINER, SIGNATURE
from partage_plugins.codecs import container_key, encode_allocation, encode_container, sign
from support.wire import field, message, pair

NODE: Final = NodeName("n1")
NAMESPACE: Final = "team"
MAIN: Final = ContainerName("main")
IMAGE: Final = "busybox"
_HOST_NETWORK: Final = 2
_OWN_PROCESSES: Final = 1
_VARIABLES: Final = 20
_MOUNTED: Final = ("/etc/hosts", "/etc/hostname", "/etc/nsswitch.conf")


@dataclass(frozen=True)
class Made:
    """A bound pod with a signed allocation: one container, a part of one card."""

    uid: PodUid
    grant: GpuGrant
    annotations: Mapping[str, str]

    @property
    def name(self) -> str:
        return f"train-{self.uid}"

    def run(self) -> bytes:
        return field(1, self._sandbox())

    def create(self, sandbox: str) -> bytes:
        return message((1, sandbox), (2, self._container()), (3, self._sandbox()))

    def create_as_rewritten(self, sandbox: str) -> bytes:
        """CreateContainer as rewritten by crishim and the plugin for cards, for a runtime without crishim."""
        key = container_key(self.uid, MAIN, 0)
        record = encode_container(ContainerAllocation(key=key, gen=1, grants={GPU.name: (self.grant,)}))
        changes = Changes(
            env={"NVIDIA_VISIBLE_DEVICES": b"void"},
            cdi=(f"partage.dev/gpu={self.grant.card}",),
            annotations={CONTAINER: record},
        )
        return rewritten(self.create(sandbox), changes)

    def _sandbox(self) -> bytes:
        metadata = message((1, self.name), (2, self.uid), (3, NAMESPACE))
        linux = message((2, message((1, message((1, _HOST_NETWORK))))))
        return (
            message((1, metadata), (6, self._uid_label()))
            + b"".join(field(7, pair(*each)) for each in self.annotations.items())
            + field(8, linux)
        )

    def _container(self) -> bytes:
        variables = [pair(f"WEB_{number}_PORT_80_TCP_ADDR", f"10.96.0.{number}") for number in range(_VARIABLES)]
        mounts = [message((1, path), (2, path), (3, 1)) for path in _MOUNTED]
        return (
            message((1, field(1, MAIN)), (2, field(1, IMAGE)), (3, "/bin/sleep"), (4, "600"))
            + b"".join(field(6, each) for each in variables)
            + b"".join(field(7, each) for each in mounts)
            + message((9, self._uid_label()), (10, pair("io.kubernetes.container.hash", "1f")), (11, "main/0.log"))
            + field(15, message((2, message((3, message((1, _HOST_NETWORK), (2, _OWN_PROCESSES)))))))
        )

    def _uid_label(self) -> bytes:
        return pair("io.kubernetes.pod.uid", self.uid)


def made(uid: PodUid, grant: GpuGrant, key: Ed25519PrivateKey) -> Made:
    containers = {MAIN: {GPU.name: (grant,)}}
    text = encode_allocation(Allocation(gen=1, pod=uid, node=NODE, containers=containers))
    return Made(uid, grant, {ALLOCATION: text, SIGNATURE: sign(text, key)})
