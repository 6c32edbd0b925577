"""The predefined identities of a rig. Pure.

A client certificate identifies a client: its common name is the user, its organizations are the groups. RBAC determines
the user's rights (`permissions`), except for `system:masters`, to whom the API server allows everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

NODES_GROUP: Final = "system:nodes"
TEAM: Final = "team-a"
"""The namespace and the group of the ordinary user."""
OUR_NAMESPACE: Final = "partage-system"


@dataclass(frozen=True)
class Person:
    """A user and its groups, as the API server sees them."""

    user: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServiceAccount:
    """A user that has a token instead of a certificate."""

    namespace: str
    name: str

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}"


ADMIN: Final = Person("partage-rig-admin", ("system:masters",))
CONTROLLER_MANAGER: Final = Person("system:kube-controller-manager")
KUBE_SCHEDULER: Final = Person("system:kube-scheduler")
KUBELET_CLIENT: Final = Person("kube-apiserver-kubelet-client")
"""The API server's identity for kubelets; not in system:masters, so that kubelets' own authorization is tested."""
ALICE: Final = Person("alice", (TEAM,))
SCHEDULER: Final = ServiceAccount(OUR_NAMESPACE, "partage-scheduler")
SHAREPODS: Final = ServiceAccount(OUR_NAMESPACE, "partage-sharepods")
ADVERTISER: Final = ServiceAccount(OUR_NAMESPACE, "partage-advertiser")
INSTALLER: Final = ServiceAccount(OUR_NAMESPACE, "partage-installer")


def node(name: str) -> Person:
    """The identity that the Node authorizer and NodeRestriction recognise as that node's."""
    return Person(f"system:node:{name}", (NODES_GROUP,))


@dataclass(frozen=True)
class Certified:
    certificate: Path
    key: Path


@dataclass(frozen=True)
class Bearer:
    token: str = field(repr=False)


@dataclass(frozen=True)
class Identity:
    """A user with its credentials."""

    user: str
    proof: Certified | Bearer
