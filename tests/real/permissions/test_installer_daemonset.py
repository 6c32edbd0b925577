"""The installer's DaemonSet on a real node: privileged, in the host's namespaces, with the account as shipped.

The daemon is real, from this checkout. It installs a made-up tree whose `partage node` records its arguments.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring import encode_public
from partage_cli.rollout.node_state import INSTALL, INSTALLED
from partage_plugins.codecs.signature import key_id
from rig.client.resources import CONFIG_MAPS, LEASES, NODES
from rig.client.wait import until
from rig.control.settings import APISERVER_PORT
from rig.identity.people import INSTALLER, OUR_NAMESPACE
from rig.identity.permissions import FOLDER, Manifest, delivered
from rig.nodes.machine import Machine
from rig.rig import CHECKOUT, Rig
from support.bytecode import BYTECODE
from support.trees import a_tree

NODE: Final = "n2"
"""A node without crishim."""
VERSION: Final = "0.1.0-g000000000001"
TREE: Final = "/var/lib/made-up-tree"
NOTES: Final = "/var/lib/made-up-notes"
PROGRAM: Final = f"""#!/bin/sh
state=/var/lib/partage/node
case "$2" in
status) test -e $state/on && on=true || on=false
    printf '{{"version":"{VERSION}","in_force":%s,"why":"it is off"}}' $on ;;
install) mkdir -p $state && echo '{{}}' > $state/journal.json ;;
switch-on) : > $state/on ;;
uninstall) rm -r $state ;;
esac
test "$2" = status || echo "$2 on $PARTAGE_NODE_NAME, beside $(cat /proc/1/comm)" >> {NOTES}
"""


def from_this_checkout(rig: Rig) -> Manifest:
    """The DaemonSet with the image's contents taken from the node: its interpreter and our environment."""
    (daemonset,) = delivered("installer/daemonset.yaml")
    pod: Any = daemonset["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    container |= {"image": "busybox", "command": [sys.executable, "-P", "-m", "partage_cli.rollout.installer"]}
    for number, path in enumerate(("/usr", "/lib", "/lib64", str(CHECKOUT), sys.base_prefix)):
        if path in {mount["mountPath"] for mount in container["volumeMounts"]}:
            continue
        pod["volumes"].append({"name": f"image-{number}", "hostPath": {"path": path}})
        container["volumeMounts"].append({"name": f"image-{number}", "mountPath": path, "readOnly": True})
    container["env"] += [
        {"name": "PARTAGE_INSTALLER_TREE", "value": f"/host{TREE}"},
        {"name": "PARTAGE_INSTALLER_PERCENT", "value": "5"},
        *({"name": name, "value": value} for name, value in BYTECODE.items()),
        # There is no kube-proxy, and therefore no Service.
        {"name": "KUBERNETES_SERVICE_HOST", "value": str(rig.control.addresses.host)},
        {"name": "KUBERNETES_SERVICE_PORT", "value": str(APISERVER_PORT)},
    ]
    return daemonset


@pytest.fixture
def machine(rig: Rig) -> Iterator[Machine]:
    """The node's machine, in a cluster with the DaemonSet and one key."""
    cluster, machine = rig.cluster, rig.nodes[NODE].machine
    a_tree(machine.path(TREE), VERSION, {"bin/partage": PROGRAM.encode()})
    public = Ed25519PrivateKey.generate().public_key()
    keys = {f"{key_id(public)}.pub": encode_public(public).decode()}
    cluster.api.create(CONFIG_MAPS.at(OUR_NAMESPACE), {"metadata": {"name": "partage-keys"}, "data": keys})
    for file in ("admission.yaml", "rbac.yaml"):
        cluster.kubectl.run("apply", "-f", str(FOLDER / "installer" / file))
    cluster.kubectl.apply(json.dumps(from_this_checkout(rig)))
    yield machine
    label(rig, None)
    cluster.kubectl.run("delete", "daemonset", INSTALLER.name, "-n", OUR_NAMESPACE)
    until("its pods are gone", lambda: "there are some" if pods(rig) else None)
    for file in ("rbac.yaml", "admission.yaml"):
        cluster.kubectl.run("delete", "-f", str(FOLDER / "installer" / file))
    cluster.api.delete(CONFIG_MAPS.at(OUR_NAMESPACE, "partage-keys"))
    cluster.nodes.annotate(NODE, {INSTALLED: None})
    cluster.api.delete(LEASES.at(OUR_NAMESPACE))
    machine.run("rm", "-rf", TREE, NOTES, "/opt/partage")


def label(rig: Rig, value: str | None) -> None:
    rig.cluster.api.patch(NODES.at(name=NODE), {"metadata": {"labels": {INSTALL: value}}})


def pods(rig: Rig) -> list[str]:
    return [pod.name for pod in rig.cluster.pods.list(OUR_NAMESPACE) if pod.name.startswith(INSTALLER.name)]


def wait_told(rig: Rig, state: str) -> None:
    def why_not() -> str | None:
        text = rig.cluster.nodes.annotations(NODE).get(INSTALLED)
        said = json.loads(text) if text else {}
        return None if said.get("state") == state else f"it says {said}; {', '.join(pods(rig)) or 'no pods'}"

    until(f"{NODE} says {state}", why_not)


def notes(machine: Machine) -> list[str]:
    path: Path = machine.path(NOTES)
    return path.read_text().splitlines() if path.exists() else []


def keys_of(machine: Machine) -> int:
    folder = machine.path("/etc/partage/keys.d")
    return len(list(folder.iterdir())) if folder.exists() else 0


def test_a_label_installs_taking_it_away_undoes_nothing_and_off_takes_all_out(rig: Rig, machine: Machine) -> None:
    assert pods(rig) == []
    label(rig, "yes")
    wait_told(rig, "in-force")
    first = machine.run("cat", "/proc/1/comm").strip()
    assert notes(machine) == [f"{command} on {NODE}, beside {first}" for command in ("install", "switch-on")]
    assert machine.path(f"/opt/partage/{VERSION}/bin/partage").read_bytes() == PROGRAM.encode()
    assert keys_of(machine) == 1
    (pod,) = (each for each in rig.cluster.pods.list(OUR_NAMESPACE) if each.name.startswith(INSTALLER.name))
    assert "the setting percent is not used any more" in pod.logs()

    label(rig, None)
    until("its pod is gone", lambda: "it is there" if pods(rig) else None)
    assert len(notes(machine)) == 2
    assert keys_of(machine) == 1

    label(rig, "off")
    wait_told(rig, "off")
    assert notes(machine)[2:] == [f"uninstall on {NODE}, beside {first}"]
    assert keys_of(machine) == 0
    assert not machine.path("/var/lib/partage/node").exists()
