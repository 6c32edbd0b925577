"""Installed as README.md says, and removed again: nothing of it is left, and nothing else is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing

import pytest

from partage_plugins.api.keys import INVENTORY
from real.permissions.objects import a_lease, an_own_node
from rig.client.cluster import Cluster
from rig.client.resources import CONFIG_MAPS, LEASES
from rig.control.plane import control_plane
from rig.control.settings import ControlSettings
from rig.identity.people import OUR_NAMESPACE, ServiceAccount
from rig.identity.permissions import ADVERTISER_FILES, FOLDER, PODS_FILE, SCHEDULER_FILES, Manifest, delivered

ADVERTISER = str(FOLDER / "advertiser")
KEYS = str(FOLDER / "keys")
PART = "app.kubernetes.io/part-of=partage"
KINDS = (
    "namespaces,daemonsets,pods,serviceaccounts,clusterroles,clusterrolebindings,roles,rolebindings,"
    "validatingadmissionpolicies,validatingadmissionpolicybindings,networkpolicies"
)
OBJECTS = [
    each
    for file in (*ADVERTISER_FILES, "networkpolicy.yaml", "daemonset.yaml")
    for each in delivered(f"advertiser/{file}")
]


@pytest.fixture
def bare() -> Iterator[Cluster]:
    """A cluster without anything of partage."""
    with control_plane(ControlSettings()) as plane, closing(Cluster(plane)) as cluster:
        for file in (PODS_FILE, *SCHEDULER_FILES):
            cluster.kubectl.run("delete", "-f", str(FOLDER / file), "--ignore-not-found")
        cluster.kubectl.run("delete", "-k", ADVERTISER, "--ignore-not-found")
        yield cluster


def ours(cluster: Cluster) -> set[tuple[str, str | None, str]]:
    """Everything with our label, except for pods, whose names are generated."""
    found = json.loads(cluster.kubectl.run("get", KINDS, "--all-namespaces", "-l", PART, "-o", "json"))["items"]
    return {named(each) for each in found if each["kind"] != "Pod"}


def named(manifest: Manifest) -> tuple[str, str | None, str]:
    return manifest["kind"], manifest["metadata"].get("namespace"), manifest["metadata"]["name"]


def commands(section: str) -> list[list[str]]:
    """The commands in that section of README.md, for our folder."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    typed = re.findall(r"^\$ kubectl (.*)$", text, re.MULTILINE)
    return [ADVERTISER.join(re.split(r"(?<=-k )\.", command)).split() for command in typed]


@pytest.mark.extended("the chart's way in and out is tested by real/installation")
def test_one_command_installs_everything_and_what_was_installed_and_written_is_taken_away(bare: Cluster) -> None:
    bare.kubectl.run(*commands("Install")[0])
    assert ours(bare) == {named(each) for each in OBJECTS}
    again = bare.kubectl.run(*commands("Install")[0]).splitlines()
    assert [line for line in again if not line.endswith(" unchanged")] == []
    bare.nodes.create(an_own_node("n1"))
    bare.nodes.annotate("n1", {INVENTORY: "{}"})
    bare.api.create(LEASES.at(OUR_NAMESPACE), a_lease("n1"))
    bare.kubectl.run("apply", "-k", KEYS)
    bare.as_account(ServiceAccount(OUR_NAMESPACE, "partage-keys")).api.create(
        CONFIG_MAPS.at(OUR_NAMESPACE), {"metadata": {"name": "partage-keys"}}
    )
    for command in commands("Uninstall"):
        bare.kubectl.run(*command)
    assert {name for _, _, name in ours(bare)} == {"partage-keys", "partage-keys-account"}
    bare.kubectl.run("delete", "-k", KEYS, "--ignore-not-found")
    assert ours(bare) == set()
    assert INVENTORY not in bare.nodes.annotations("n1")
    assert bare.api.list(LEASES.at(OUR_NAMESPACE)) == []
