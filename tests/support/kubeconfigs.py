"""Kubeconfigs for tests, written as JSON, which is YAML, too."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from rig.identity.certificates import Pair


def write(
    path: Path, *, user: Any = None, server: str = "https://192.0.2.1:6443", cluster: dict[str, Any] | None = None
) -> Path:
    """Write a kubeconfig with one cluster, one user and one current context."""
    said = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(said))
    return path


def embedded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def plugin(*argv: str, **env: str) -> dict[str, Any]:
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": argv[0],
            "args": list(argv[1:]),
            "env": [{"name": name, "value": value} for name, value in env.items()],
            "interactiveMode": "Never",
        }
    }


def credential(token: str, *, expires: str | None = None) -> str:
    return _credential({"token": token, **({"expirationTimestamp": expires} if expires else {})})


def certified(pair: Pair, *, expires: str) -> str:
    """A credential with a client certificate."""
    certificate, key = pair.certificate.decode(), pair.key.decode()
    return _credential({"clientCertificateData": certificate, "clientKeyData": key, "expirationTimestamp": expires})


def _credential(status: dict[str, str]) -> str:
    return json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})
