"""Users' RBAC rights, as the API server reports them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from rig.client.cluster import Cluster
from rig.client.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, Json
from rig.client.wait import until
from rig.identity.people import ALICE, ServiceAccount

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_GROUP: Final = "rbac.authorization.k8s.io"
_EVERYBODY: Final = "system:authenticated"


def may(cluster: Cluster, user: str, **asked: str) -> bool:
    """Whether a user has a right, such as `verb="create", resource="pods", subresource="binding"`."""
    spec = {"user": user, "groups": [_EVERYBODY], "resourceAttributes": asked}
    return bool(cluster.api.create(_REVIEWS, {"spec": spec})["status"]["allowed"])


@contextmanager
def without_right(admin: Cluster, account: ServiceAccount, resource: str) -> Generator[None]:
    """Remove a right from the account's role of its name inside the context."""
    path = CLUSTER_ROLES.at(name=account.name)
    rules = admin.api.get(path)["rules"]
    kind, _, part = resource.partition("/")
    right = {"resource": kind, **({"verb": "create", "subresource": part} if part else {"verb": "list"})}
    admin.api.patch(path, {"rules": [each for each in rules if each["resources"] != [resource]]})
    try:
        until("it may not", lambda: "it may" if may(admin, account.user, **right) else None)
        yield
    finally:
        admin.api.patch(path, {"rules": rules})
        until("it may again", lambda: None if may(admin, account.user, **right) else "it may not")


@contextmanager
def every_right(admin: Cluster, name: str, rules: Sequence[Json], *accounts: ServiceAccount) -> Generator[None]:
    """Grant these rights in the whole cluster inside the context, to these accounts, or to everybody if none."""
    subjects = [{"kind": "ServiceAccount", "namespace": who.namespace, "name": who.name} for who in accounts]
    everybody = [{"apiGroup": _GROUP, "kind": "Group", "name": _EVERYBODY}]
    role = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": name}
    binding = {"metadata": {"name": name}, "roleRef": role, "subjects": subjects or everybody}
    users = [who.user for who in accounts or (ALICE,)]
    most = [(rule["apiGroups"][0], rule["resources"][0]) for rule in rules]

    def given() -> set[bool]:
        asked = ((user, group, kind) for user in users for group, kind in most)
        return {may(admin, user, verb="deletecollection", group=group, resource=kind) for user, group, kind in asked}

    admin.api.create(CLUSTER_ROLES.at(), {"metadata": {"name": name}, "rules": rules})
    admin.api.create(CLUSTER_ROLE_BINDINGS.at(), binding)
    until("RBAC allows it", lambda: None if given() == {True} else "not yet")
    yield
    admin.api.delete(CLUSTER_ROLE_BINDINGS.at(name=name))
    admin.api.delete(CLUSTER_ROLES.at(name=name))
    until("RBAC has forgotten it", lambda: "not yet" if True in given() else None)
