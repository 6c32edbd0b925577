"""The cluster for tests, as any identity.

    web = cluster.pods.create("team-a", a_pod("web"))
    with pytest.raises(Refused):
        cluster.as_user("alice").nodes.annotate("n1", {"partage.dev/inventory": "{}"})

A cluster is for one thread. Its creator closes it, which also closes everything that `as_…` derived from it.
"""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_plugins.api import Allocation
from rig.client.api import Api
from rig.client.binding import bind, signed
from rig.client.kubectl import Kubectl, Speaker
from rig.client.nodes import Nodes
from rig.client.pods import Pod, Pods
from rig.client.resources import NAMESPACES, SERVICE_ACCOUNTS, Json
from rig.client.wait import until
from rig.control.plane import ControlPlane
from rig.errors import Refused
from rig.identity.people import ALICE, SCHEDULER, Bearer, Identity, Person, ServiceAccount, node

_TOKEN_LIFE_S: Final = 3600


class Cluster:
    def __init__(self, control: ControlPlane, identity: Identity | None = None) -> None:
        self._control = control
        self.identity = identity or control.identities.admin
        self.api: Api = control.api(self.identity)
        self.kubectl = Kubectl(
            program=control.programs["kubectl"],
            kubeconfig=control.identities.kubeconfig(self.identity, control.server),
            home=control.run_folder,
        )
        speaker = Speaker(self.api, self.kubectl)
        self.pods = Pods(speaker)
        self.nodes = Nodes(speaker)
        self._others: dict[Identity, Cluster] = {}
        self._accounts: dict[tuple[ServiceAccount, str], Identity] = {}

    def as_user(self, name: str, *groups: str) -> Cluster:
        """An ordinary user with a client certificate; alice is in her team's group."""
        return self.as_person(ALICE if name == ALICE.user and not groups else Person(name, groups))

    def as_node(self, name: str) -> Cluster:
        return self.as_person(node(name))

    def as_person(self, person: Person) -> Cluster:
        return self._as(self._control.identities.client(person))

    def as_account(self, account: ServiceAccount, bound_to: Json | None = None) -> Cluster:
        """A service account with a token from the API server, bound or not, as for `token`."""
        key = account, str(bound_to["metadata"]["uid"]) if bound_to else ""
        if key not in self._accounts:
            self._accounts[key] = Identity(account.user, Bearer(self.token(account, bound_to)))
        return self._as(self._accounts[key])

    def with_token(self, account: ServiceAccount, token: str) -> Cluster:
        return self._as(Identity(account.user, Bearer(token)))

    def token(self, account: ServiceAccount, bound_to: Json | None = None) -> str:
        """A new token of a service account. Bound to a node, or to a pod that is on one, it names that node."""
        path = SERVICE_ACCOUNTS.at(account.namespace, account.name, "token")
        spec = {"expirationSeconds": _TOKEN_LIFE_S, **({"boundObjectRef": _reference(bound_to)} if bound_to else {})}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self.api.create(path, request)["status"]["token"])

    def bind(self, pod: Pod, node_name: str, allocation: Allocation, *, signed_by: Ed25519PrivateKey) -> None:
        """Bind manually as the scheduler: node, allocation and signature in one request."""
        bind(self.as_account(SCHEDULER).api, pod, node_name, signed(allocation, signed_by))

    def delete_made(self, grace_s: int | None = None) -> None:
        """Delete every pod that was created by any identity; without a kubelet, use a grace of 0."""
        for each in (self, *self._others.values()):
            each.pods.delete_made(grace_s)

    def create_namespace(self, name: str, **labels: str) -> None:
        """Create a namespace; returns when it has the default account that pods need, which a controller creates."""
        self.api.create(NAMESPACES.at(), {"metadata": {"name": name, "labels": labels}})

        def why_not() -> str | None:
            try:
                self.api.get(SERVICE_ACCOUNTS.at(name, "default"))
            except Refused as refused:
                return str(refused)
            return None

        until(f"pods can be made in {name}", why_not)

    def delete_namespaces(self, *names: str) -> None:
        """Delete namespaces, and wait until they and their contents are gone."""
        for name in names:
            self.api.delete(NAMESPACES.at(name=name))

        def why_not() -> str | None:
            there = {each["metadata"]["name"] for each in self.api.list(NAMESPACES.at())}
            return ", ".join(sorted(there & set(names))) or None

        until(f"namespaces {', '.join(names)} are gone", why_not)

    def close(self) -> None:
        """Close every connection; the next request opens one again."""
        self.api.close()
        for other in self._others.values():
            other.close()

    def _as(self, identity: Identity) -> Cluster:
        if identity not in self._others:
            self._others[identity] = Cluster(self._control, identity)
        return self._others[identity]


def _reference(to: Json) -> Json:
    metadata = to["metadata"]
    return {"apiVersion": "v1", "kind": to["kind"], "name": metadata["name"], "uid": metadata["uid"]}
