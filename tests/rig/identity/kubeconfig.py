"""Kubeconfigs: with which components and kubectl find the API server and prove who they are. Pure but for reading keys.

Written as JSON, which is YAML too. Certificates are embedded, so a file is whole wherever it is mounted.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from rig.identity.people import Bearer, Identity


def kubeconfig(identity: Identity, *, server: str, ca: Path, namespace: str = "default") -> bytes:
    """The file for this identity at the API server with this URL."""
    context = {"cluster": "rig", "user": identity.user, "namespace": namespace}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "rig", "cluster": {"server": server, "certificate-authority-data": _embedded(ca)}}],
        "users": [{"name": identity.user, "user": _proof(identity)}],
        "contexts": [{"name": "rig", "context": context}],
        "current-context": "rig",
    }
    return json.dumps(config, indent=1).encode()


def _proof(identity: Identity) -> dict[str, Any]:
    if isinstance(identity.proof, Bearer):
        return {"token": identity.proof.token}
    return {
        "client-certificate-data": _embedded(identity.proof.certificate),
        "client-key-data": _embedded(identity.proof.key),
    }


def _embedded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
