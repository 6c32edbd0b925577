"""Any configuration of a container yields no request, a request, or a refusal in one printable line.

The agent reads it from a bundle: an engine's JSON, with texts of users and images.
"""

from __future__ import annotations

import json

from fuzz import _codecs
from partage_oci.rewrite import read_config, require_confined, rewritten, shown
from partage_oci.words import asked_of
from partage_plugins.api import Adjustment, ContainerKey
from partage_plugins.codecs.native import read_requests
from partage_plugins.errors import PartageError, Refused

ID = "5" * 64
_LONGEST = 4096


def _config(*env: str, **annotations: str) -> bytes:
    named = {f"partage.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    linux = {
        "namespaces": [{"type": "pid"}],
        "resources": {"devices": [{"allow": False}], "memory": {"limit": 1 << 30}},
    }
    mounts = [{"destination": "/etc/hosts", "source": f"/c/{ID}/hosts", "options": ["ro"]}]
    return json.dumps({"process": {"env": env}, "annotations": named, "linux": linux, "mounts": mounts}).encode()


SEEDS = (
    _config("PATH=/bin", "PARTAGE_SHARE=300", "PARTAGE_MEMORY=8g", "PARTAGE_LIMIT=500"),
    _config("DOCKER_RESOURCE_PARTAGE-MILLI=300", "NVIDIA_GPU_MEMORY_LIMIT=8192", models="NVIDIA L4"),
    _config("PARTAGE_CARDS=2", gpu_milli="300", gpu_memory="8Gi", movable="yes"),
)
DICTIONARY = (*_codecs.JSON_WORDS, b"PARTAGE_", b"partage.dev/", b"env", b"annotations", b"devices", b"major", b"Gi")


def target(data: bytes) -> str:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return "no JSON"
    if not isinstance(document, dict):
        return "no object"
    try:
        return _asked(document)
    except Refused as no:
        why = str(no)
    assert why.isprintable(), why
    assert len(why) < _LONGEST
    return "refused"


def _asked(document: dict[str, object]) -> str:
    config = read_config(document)
    asked = asked_of(config.env, config.annotations or {})
    if asked is None:
        return "asks for nothing"
    require_confined(config)
    pod = asked.pod(ID, memory_bytes=config.memory_bytes)
    try:
        found = read_requests(pod)
    except PartageError as error:
        raise Refused(asked.refusal(error)) from None
    key = ContainerKey("0" * 32)
    shown(config, key, pod, "/usr/bin/runc")
    made = rewritten(document, Adjustment(env={"A": "1"}), (), hook="/h", key=key, annotations={})
    again = rewritten(json.loads(json.dumps(made)), Adjustment(env={"A": "1"}), (), hook="/h", key=key, annotations={})
    assert again["process"] == made["process"], "what was replaced once is replaced in its place"
    return "asks" if found else "asks in vain"
