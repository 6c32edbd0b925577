"""Who gets in at all: every door is on the rig's own address, and none opens without an identity."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rig.control.plane import ControlPlane
from rig.control.readiness import trusting
from rig.control.settings import APISERVER_PORT, CONTROLLER_MANAGER_PORT, ETCD_PEER_PORT, ETCD_PORT, KUBE_SCHEDULER_PORT
from rig.identity.people import ALICE
from rig.machine.components import Component

pytestmark = pytest.mark.slow

PORTS = {
    "etcd": {ETCD_PORT, ETCD_PEER_PORT},
    "kube-apiserver": {APISERVER_PORT},
    "kube-controller-manager": {CONTROLLER_MANAGER_PORT},
    "kube-scheduler": {KUBE_SCHEDULER_PORT},
}
LISTENING = "0A"


def listening(component: Component) -> Iterator[tuple[str, int]]:
    """Where a process accepts connections, from the kernel's own tables."""
    own = {str(fd.readlink()) for fd in Path(f"/proc/{component.pid}/fd").iterdir()}
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/{component.pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            address, _, port = fields[1].partition(":")
            if fields[3] == LISTENING and f"socket:[{fields[9]}]" in own:
                yield _address(address, family), int(port, 16)


def _address(text: str, family: socket.AddressFamily) -> str:
    """The kernel writes words of four bytes, each in the machine's order."""
    words = [bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8)]
    return socket.inet_ntop(family, b"".join(words))


def answer(host: str, port: int, path: str, context: ssl.SSLContext) -> int:
    with closing(http.client.HTTPSConnection(host, port, timeout=5, context=context)) as connection:
        connection.request("GET", path)
        return connection.getresponse().status


@pytest.fixture
def host(control: ControlPlane) -> str:
    return str(control.addresses.host)


def test_components_listen_on_the_rigs_address_alone(control: ControlPlane, host: str) -> None:
    for component in control.components:
        assert set(listening(component)) == {(host, port) for port in PORTS[component.name]}, component.name


def test_nobody_is_anonymous(control: ControlPlane, host: str) -> None:
    nobody = trusting(control.identities.ca)
    assert answer(host, APISERVER_PORT, "/readyz", nobody) == 401
    assert answer(host, APISERVER_PORT, "/api/v1/namespaces", nobody) == 401


@pytest.mark.parametrize("port", [ETCD_PORT, ETCD_PEER_PORT])
def test_etcd_speaks_to_nobody_without_its_own_authoritys_certificate(
    control: ControlPlane, host: str, port: int
) -> None:
    """Nor to whoever has one of the cluster's: behind etcd's door there is no RBAC."""
    strangers = [trusting(control.identities.etcd_ca)]
    strangers.append(trusting(control.identities.etcd_ca, control.identities.certified(ALICE)))
    for stranger in strangers:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            answer(host, port, "/version", stranger)


def test_private_files_are_their_owners_alone(control: ControlPlane) -> None:
    folder = control.identities.folder
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
