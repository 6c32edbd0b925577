"""The identities of one rig, created on first use, and their files.

There are two CAs: a client certificate of the cluster must not give access to etcd, which has no RBAC. Everything is in
one folder with access for its owner only, because programs read files. Kubeconfigs are JSON, which is YAML too, with
embedded certificates, so that a file works wherever it is mounted.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

from rig.identity.certificates import Authority, Pair, Use, signing_keys
from rig.identity.people import ADMIN, Bearer, Certified, Identity, Person, node

_NOT_IN_FILE_NAMES: Final = re.compile(r"[^A-Za-z0-9.-]+")


class Identities:
    """The users and servers of one rig. The CAs' keys stay in this process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        self._cluster = Authority("partage-rig")
        self._etcd = Authority("partage-rig-etcd")
        self.ca = self._written("ca.crt", self._cluster.certificate)
        self.etcd_ca = self._written("etcd-ca.crt", self._etcd.certificate)
        keys = signing_keys()
        self.account_keys = Certified(
            certificate=self._written("service-accounts.pub", keys.public),
            key=self._written("service-accounts.key", keys.private),
        )
        self._clients: dict[Person, Certified] = {}

    @property
    def admin(self) -> Identity:
        return self.client(ADMIN)

    def client(self, person: Person) -> Identity:
        return Identity(person.user, self.certified(person))

    def certified(self, person: Person) -> Certified:
        """The client certificate of a user for the API server, or of the API server for kubelets."""
        if person not in self._clients:
            self._clients[person] = self._stored(person.user, self._cluster.issue(person, Use.CLIENT))
        return self._clients[person]

    def node(self, name: str) -> Identity:
        return self.client(node(name))

    def server(self, name: str, *, ips: Sequence[IPv4Address], names: Sequence[str] = ()) -> Certified:
        pair = self._cluster.issue(Person(name), Use.SERVER, ips=ips, names=names)
        return self._stored(f"{name}-serving", pair)

    def kubelet_server(self, name: str, ip: IPv4Address) -> Certified:
        """The server certificate of a node's kubelet, for logs and exec."""
        pair = self._cluster.issue(node(name), Use.SERVER, ips=[ip], names=[name])
        return self._stored(f"kubelet-{name}-serving", pair)

    def etcd_server(self, ip: IPv4Address) -> Certified:
        return self._stored("etcd-serving", self._etcd.issue(Person("etcd"), Use.BOTH, ips=[ip]))

    def etcd_client(self, name: str) -> Certified:
        """A client that may read and write everything in etcd."""
        return self._stored(f"etcd-client-{name}", self._etcd.issue(Person(name), Use.CLIENT))

    def kubeconfig(self, identity: Identity, server: str) -> Path:
        """A kubeconfig for the API server with this URL."""
        name = _file_name(identity.user) + _which(identity.proof)
        return self._written(f"{name}.kubeconfig", kubeconfig(identity, server=server, ca=self.ca))

    def _stored(self, name: str, pair: Pair) -> Certified:
        return Certified(
            certificate=self._written(f"{_file_name(name)}.crt", pair.certificate),
            key=self._written(f"{_file_name(name)}.key", pair.key),
        )

    def _written(self, name: str, content: bytes) -> Path:
        return write_private(self.folder / name, content)


def write_private(path: Path, content: bytes) -> Path:
    """Create a file that only its owner may read, from the moment of its creation."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return path.absolute()


def _which(proof: Certified | Bearer) -> str:
    """A service account has several tokens with different claims, and each has its own file."""
    return f"-{hashlib.sha256(proof.token.encode()).hexdigest()[:8]}" if isinstance(proof, Bearer) else ""


def _file_name(name: str) -> str:
    return _NOT_IN_FILE_NAMES.sub("-", name)


def kubeconfig(identity: Identity, *, server: str, ca: Path, namespace: str = "default") -> bytes:
    """The kubeconfig of this identity for the API server with this URL."""
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
