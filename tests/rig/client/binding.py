"""Binds a pod as the scheduler does: one POST sets its node and adds the signed allocation to its annotations.

The API server does not validate the annotations of a Binding. It stores an invalid key, or more than annotations may
hold in total, and from then on rejects every update of the pod's status: the pod is stuck permanently. So both are
checked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_plugins.api import Allocation
from partage_plugins.api.keys import ALLOCATION, SIGNATURE
from partage_plugins.codecs import encode_allocation, sign
from rig.client.api import Api
from rig.client.pods import Pod
from rig.client.resources import Json

MOST_BYTES: Final = 256 * 1024
"""Limit for all annotations of an object, keys and values."""
_KEY: Final = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def signed(allocation: Allocation, key: Ed25519PrivateKey) -> dict[str, str]:
    text = encode_allocation(allocation)
    return {ALLOCATION: text, SIGNATURE: sign(text, key)}


def bind(api: Api, pod: Pod, node: str, annotations: Mapping[str, str]) -> None:
    """Bind exactly this pod to a node, with these annotations; raises `Refused` if it is already bound."""
    _check({**pod.annotations, **annotations})
    api.create(pod.path("binding"), binding(pod, node, annotations))


def binding(pod: Pod, node: str, annotations: Mapping[str, str]) -> Json:
    """The Binding. The uid is a precondition: another pod with the name is not bound."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "annotations": dict(annotations),
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def _check(annotations: Mapping[str, str]) -> None:
    for key in annotations:
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is no key of an annotation: the pod would be stuck for good")
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > MOST_BYTES:
        raise ValueError(f"the pod would have {size} bytes of annotations, {MOST_BYTES} are allowed: it would be stuck")
