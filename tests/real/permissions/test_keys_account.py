"""A cluster's keys as shipped: `partage keys` makes and rotates them; an administrator does nothing by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from partage_cli.keys.objects import AUTHORITY, CALLER_TLS, EXTENDER_CA, EXTENDER_TLS, KEYS, MANAGED_BY, SIGNING
from partage_plugins.api.keys import INVENTORY
from partage_plugins.api.keys import KEYS as TOLD
from real.cli.asking import Done, config_of, partage
from real.permissions.attempts import Attempt, changing, creating, deleting
from rig.client.api import Patch
from rig.client.cluster import Cluster
from rig.client.policies import why_not_denied
from rig.client.resources import ADMISSION_BINDINGS, CONFIG_MAPS, LEASES, SECRETS, Json
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import ADVERTISER, OUR_NAMESPACE, ServiceAccount
from rig.identity.permissions import FOLDER
from support.objects import lease_body

ACCOUNT: Final = ServiceAccount(OUR_NAMESPACE, "partage-keys")
FILES: Final = [word for file in ("admission", "rbac") for word in ("-f", str(FOLDER / f"keys/{file}.yaml"))]
ROOT_OF_TRUST: Final = CONFIG_MAPS.at(OUR_NAMESPACE, KEYS)
IN_FORCE: Final = '{"v":1,"ready":{"crishim":true,"broker":true},"kinds":{}}'


def a_map(name: str, **metadata: object) -> Json:
    return {"metadata": {"name": name, **metadata}, "data": {"0000000000000000.pub": "mine"}}


@pytest.fixture
def keys(cluster: Cluster, made: None) -> Cluster:
    return cluster


@pytest.fixture(scope="module")
def made(admin: Cluster) -> Iterator[None]:
    """The first key and certificates, made by an administrator."""
    admin.kubectl.run("apply", *FILES)
    until("only the account writes the keys", lambda: _why_not_in_force(admin))
    done = typed(admin, "ensure", "--extender")
    assert done.returncode == 0, done.stderr
    admin.close()
    yield
    admin.kubectl.run("delete", *FILES)
    until("the policy is forgotten", lambda: None if _why_not_in_force(admin) else "not yet")
    for path in (
        *(SECRETS.at(OUR_NAMESPACE, name) for name in (SIGNING, AUTHORITY, EXTENDER_TLS, CALLER_TLS)),
        *(CONFIG_MAPS.at(OUR_NAMESPACE, name) for name in (KEYS, EXTENDER_CA)),
    ):
        admin.api.delete(path)


def _why_not_in_force(admin: Cluster) -> str | None:
    dry = {"dryRun": "All"}
    return why_not_denied(
        ("partage-keys alone writes it", lambda: admin.api.create(CONFIG_MAPS.at(OUR_NAMESPACE), a_map(KEYS), dry))
    )


def typed(cluster: Cluster, *words: str) -> Done:
    return partage("keys", *words, "--kubeconfig", config_of(cluster))


def public(cluster: Cluster) -> set[str]:
    return set(cluster.api.get(ROOT_OF_TRUST)["data"])


def test_the_account_finds_what_an_administrator_made(keys: Cluster) -> None:
    before = [keys.api.get(path) for path in (ROOT_OF_TRUST, SECRETS.at(OUR_NAMESPACE, EXTENDER_TLS))]
    done = typed(keys.as_account(ACCOUNT), "ensure", "--extender")
    assert (done.returncode, f"{done.stdout.strip()}.pub") == (0, *public(keys))
    assert [keys.api.get(path) for path in (ROOT_OF_TRUST, SECRETS.at(OUR_NAMESPACE, EXTENDER_TLS))] == before


@pytest.mark.parametrize(
    "attempt",
    [
        changing(ROOT_OF_TRUST, {"data": {"0000000000000000.pub": "mine"}}),
        changing(ROOT_OF_TRUST, {"metadata": {"labels": {MANAGED_BY: None}}}),
        changing(ROOT_OF_TRUST, {"apiVersion": "v1", "kind": "ConfigMap", **a_map(KEYS)}, Patch.APPLY),
        lambda us: us.api.replace(ROOT_OF_TRUST, a_map(KEYS)),
        deleting(ROOT_OF_TRUST),
        deleting(f"{CONFIG_MAPS.at(OUR_NAMESPACE)}?fieldSelector=metadata.name%3D{KEYS}"),
    ],
    ids=["change", "label", "apply", "replace", "delete", "delete all"],
)
def test_no_administrator_says_which_keys_nodes_believe(keys: Cluster, attempt: Attempt) -> None:
    before = keys.api.get(ROOT_OF_TRUST)
    with pytest.raises(Refused) as refused:
        attempt(keys)
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")
    assert "the account partage-keys alone writes it: use `partage keys rotate`" in refused.value.message
    assert keys.api.get(ROOT_OF_TRUST) == before


def test_other_maps_and_other_namespaces_are_everybodys(keys: Cluster) -> None:
    keys.api.create(CONFIG_MAPS.at("default"), a_map(KEYS))
    keys.api.delete(CONFIG_MAPS.at("default", KEYS))
    keys.api.create(CONFIG_MAPS.at(OUR_NAMESPACE), a_map("partage-keys-of-mine"))
    keys.api.delete(CONFIG_MAPS.at(OUR_NAMESPACE, "partage-keys-of-mine"))


_TOKEN = {"metadata": {"name": SIGNING}, "type": "kubernetes.io/service-account-token"}
_OF_ANOTHER = {**_TOKEN, "metadata": {"name": "of-another", "annotations": {"kubernetes.io/service-account.name": "x"}}}


@pytest.mark.parametrize(
    "attempt",
    [
        creating(SECRETS.at(OUR_NAMESPACE), {"metadata": {"name": "another"}}),
        creating(SECRETS.at(OUR_NAMESPACE), _OF_ANOTHER),
        creating(SECRETS.at("default"), {"metadata": {"name": SIGNING}}),
        creating(CONFIG_MAPS.at(OUR_NAMESPACE), a_map("partage-scheduler")),
        deleting(ROOT_OF_TRUST),
        deleting(SECRETS.at(OUR_NAMESPACE, SIGNING)),
        lambda us: us.api.list(SECRETS.at(OUR_NAMESPACE)),
        lambda us: us.api.get(CONFIG_MAPS.at(OUR_NAMESPACE, "kube-root-ca.crt")),
        lambda us: us.nodes.get("n1"),
        deleting(ADMISSION_BINDINGS.at(name="partage-keys")),
    ],
    ids=[
        "another secret",
        "a token",
        "elsewhere",
        "another map",
        "delete the map",
        "delete the secret",
        "list secrets",
        "read another map",
        "read a node",
        "lift the policy",
    ],
)
def test_the_account_may_not(keys: Cluster, attempt: Attempt) -> None:
    with pytest.raises(Refused) as refused:
        attempt(keys.as_account(ACCOUNT))
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")


def test_who_may_make_no_token_of_the_account_changes_no_key(keys: Cluster) -> None:
    done = typed(keys.as_account(ADVERTISER, keys.nodes.get("n1")), "rotate", "--wait", "0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "403" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_key_is_rotated_once_every_node_has_it_and_retired_once_it_has_settled(keys: Cluster) -> None:
    (old,) = (name.removesuffix(".pub") for name in public(keys))
    keys.nodes.annotate("n1", {INVENTORY: IN_FORCE})
    keys.api.create(LEASES.at(OUR_NAMESPACE), lease_body("n1", {TOLD: old}, lasts_s=600))
    waits = typed(keys, "rotate", "--wait", "0")
    assert waits.returncode == 1
    assert "1 nodes in force do not trust" in waits.stderr
    assert "n1" in waits.stderr
    (new,) = (name.removesuffix(".pub") for name in public(keys) - {f"{old}.pub"})
    told = lease_body("n1", {TOLD: ",".join(sorted((old, new)))}, lasts_s=600)
    keys.api.patch(LEASES.at(OUR_NAMESPACE, "n1"), told)
    done = typed(keys, "rotate", "--wait", "0")
    assert (done.returncode, done.stdout.strip()) == (0, new), done.stderr
    assert set(keys.api.get(SECRETS.at(OUR_NAMESPACE, SIGNING))["data"]) == {f"{new}.key", "signing"}
    refused = typed(keys, "retire", "--in-cluster", old)
    assert refused.returncode == 1
    assert "a scheduler may not know it yet" in refused.stderr
    assert typed(keys, "retire", "--in-cluster", "--force", old).returncode == 0
    assert public(keys) == {f"{new}.pub"}
    keys.api.delete(LEASES.at(OUR_NAMESPACE, "n1"))
    keys.nodes.annotate("n1", {INVENTORY: None})
