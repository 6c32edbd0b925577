"""Two replicas on a real API server: both are Ready, so a rollout ends, and the Service routes to the leader."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from real.scheduler.conftest import of
from rig.client.cluster import Cluster
from rig.client.resources import Resource
from rig.client.wait import until
from rig.identity.people import OUR_NAMESPACE
from rig.identity.permissions import FOLDER, delivered
from support.processes import free_port
from support.scheduler_process import SchedulerProcess

(SLICE,) = delivered("extender/endpointslice.yaml")
SLICES = Resource("discovery.k8s.io/v1", "endpointslices")
NAME = SLICE["metadata"]["name"]
ADDRESSES = ("192.0.2.1", "192.0.2.2")


class Replica:
    """One of the two schedulers."""

    def __init__(self, scheduler: SchedulerProcess, address: str) -> None:
        self.scheduler, self.address, self._port = scheduler, address, free_port()

    def start(self) -> None:
        where = ("--metrics-address", f"127.0.0.1:{self._port}", "--pod-ip", self.address)
        self.scheduler.start(*where, "--extender-slice", NAME)

    def why_not_ready(self) -> str | None:
        """The readiness probe, as kubelet sends it."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/readyz", timeout=5):
                return None
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()
        except OSError as error:
            return str(error)


@pytest.fixture
def replicas(bare: Cluster, tmp_path: Path) -> Iterator[list[Replica]]:
    apply(bare)
    with ExitStack() as stack:
        stack.callback(bare.api.delete, SLICES.at(OUR_NAMESPACE, NAME))
        yield [Replica(stack.enter_context(of(bare, tmp_path / address)), address) for address in ADDRESSES]


def apply(cluster: Cluster) -> None:
    cluster.kubectl.run("apply", "-f", str(FOLDER / "extender/endpointslice.yaml"))


def leads_to(cluster: Cluster) -> list[str]:
    found = cluster.api.get(SLICES.at(OUR_NAMESPACE, NAME))
    return [address for endpoint in found.get("endpoints") or [] for address in endpoint["addresses"]]


def wait_leads_to(cluster: Cluster, address: str) -> None:
    def why_not() -> str | None:
        return None if leads_to(cluster) == [address] else f"it leads to {leads_to(cluster)}"

    until(f"the slice leads to {address}", why_not, 30)


def test_both_are_ready_and_the_service_follows_the_lead(bare: Cluster, replicas: list[Replica]) -> None:
    one, two = replicas
    one.start()
    until("one is ready", one.why_not_ready, 60)
    wait_leads_to(bare, one.address)
    two.start()
    until("a follower is ready", two.why_not_ready, 60)
    assert one.why_not_ready() is None
    apply(bare)
    assert leads_to(bare) == [one.address], "what is applied again does not take it away"
    one.scheduler.kill()
    assert leads_to(bare) == [one.address], "who died can't take it back"
    wait_leads_to(bare, two.address)
    until("the new leader knows all that there is", two.why_not_ready, 60)
    one.start()
    until("the one that came back follows", one.why_not_ready, 60)
    assert two.scheduler.stop() == 0
    wait_leads_to(bare, one.address)
