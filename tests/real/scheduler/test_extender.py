"""Behind a real kube-scheduler, with the shipped configuration: it decides on nodes and we on cards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from partage_plugins.api.keys import GPU_MILLI
from partage_scheduler.extender.reminders import CONDITION
from real.scheduler.conftest import beats
from real.scheduler.test_placing import require_good, wait_bound
from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.client.resources import LEASES, PRIORITY_CLASSES
from rig.client.wait import until
from rig.control.plane import ControlPlane
from rig.identity.certificates import Authority, Use
from rig.identity.people import KUBE_SCHEDULER, OUR_NAMESPACE, TEAM, Person
from rig.identity.permissions import delivered
from rig.machine.components import Component, serving
from support.kube import stored
from support.processes import free_port
from support.scheduler_process import SchedulerProcess

(CONFIGURATION,) = delivered("extender/kube-scheduler-configuration.yaml")
PROFILES = [profile["schedulerName"] for profile in CONFIGURATION["profiles"]]
KNOWN = "cache in sync"
SOON = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 2}
"""Limits the wait for a pod that was refused."""
Node = Callable[[str], None]


class Certificates:
    """Certificates of both sides, by one authority."""

    def __init__(self, folder: Path, name: str) -> None:
        authority = Authority("partage-extender")
        self.authority = folder / "ca.crt"
        self.authority.write_bytes(authority.certificate)
        self.server = stored(folder, "server", authority.issue(Person(name), Use.SERVER, names=[name]))
        self.caller = stored(folder, "caller", authority.issue(KUBE_SCHEDULER, Use.CLIENT))


class Behind:
    """A kube-scheduler with our daemon behind it."""

    def __init__(
        self,
        control: ControlPlane,
        scheduler: SchedulerProcess,
        folder: Path,
        configuration: Mapping[str, Any] = CONFIGURATION,
    ) -> None:
        (extender,) = configuration["extenders"]
        name, self.port = extender["tlsConfig"]["serverName"], free_port()
        papers = Certificates(folder, name)
        tls = dict(zip(("certFile", "keyFile"), map(str, papers.caller), strict=True))
        here = {
            **extender,
            "urlPrefix": f"https://127.0.0.1:{self.port}",
            "tlsConfig": {"serverName": name, "caFile": str(papers.authority), **tls},
        }
        configured = {**_without_kinds(configuration), **SOON, "extenders": [here]}
        self.kube: Component = control.another_scheduler(configured)
        self.scheduler = scheduler
        certificate, key = papers.server
        self._flags = (
            *("--extender-address", f"127.0.0.1:{self.port}"),
            *("--extender-certificate", f"/{certificate.name}", "--extender-key", f"/{key.name}"),  # below the root
            *("--extender-callers", f"/{papers.authority.name}"),
        )

    def start(self) -> None:
        """Return once it answers."""
        said = self.scheduler.said.count(KNOWN)
        self.scheduler.start(*self._flags)
        until("it leads", lambda: None if self.scheduler.said.count(KNOWN) > said else self.scheduler.said[-500:], 60)


@pytest.fixture
def behind(control: ControlPlane, scheduler: SchedulerProcess, tmp_path: Path) -> Iterator[Behind]:
    made = Behind(control, scheduler, tmp_path)
    made.start()
    with serving(made.kube):
        yield made


def _without_kinds(configuration: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in configuration.items() if key not in {"apiVersion", "kind"}}


def shared(cluster: Cluster, name: str, milli: int, *, profile: str = PROFILES[0], **spec: Any) -> Pod:
    return cluster.pods.create(TEAM, a_pod(name, scheduler=profile, limits={GPU_MILLI: str(milli)}, spec=spec))


def test_pods_of_all_profiles_are_bound_with_signed_allocations(
    bare: Cluster, node: Node, behind: Behind, tmp_path: Path
) -> None:
    for name in ("n1", "n2", "n3"):
        node(name)
    pods = [shared(bare, f"p{number}", 500, profile=PROFILES[number % len(PROFILES)]) for number in range(10)]
    plain = bare.pods.create(TEAM, a_pod("plain", scheduler=PROFILES[0]))
    wait_bound([*pods, plain])
    require_good(pods, tmp_path)
    assert len({grant for pod in pods for grant in pod.annotations}) == 2
    assert len(PROFILES) == 2
    assert behind.scheduler.stop() == 0


def test_a_pod_is_placed_soon_after_a_node_beats_again(
    bare: Cluster, node: Node, behind: Behind, tmp_path: Path
) -> None:
    node("n1")
    plain = bare.pods.create(TEAM, a_pod("plain", scheduler=PROFILES[0]))
    wait_bound([plain])  # otherwise kube-scheduler would retry the next one since a node was added
    bare.api.delete(LEASES.at(OUR_NAMESPACE, "n1"))
    waits = shared(bare, "waits", 600)
    waits.wait_why("heartbeat")
    beats(bare, "n1")  # kube-scheduler gets no event for it
    wait_bound([waits])
    require_good([waits], tmp_path)
    assert CONDITION in {each["type"] for each in waits.refresh()["status"]["conditions"]}


def test_while_nobody_leads_pods_wait_and_then_are_placed(
    bare: Cluster, node: Node, behind: Behind, tmp_path: Path
) -> None:
    node("n1")
    first = shared(bare, "first", 700)
    wait_bound([first])
    behind.scheduler.kill()
    second, third = shared(bare, "second", 700), shared(bare, "third", 300)
    plain = bare.pods.create(TEAM, a_pod("plain", scheduler=PROFILES[0]))
    wait_bound([plain])
    behind.start()
    wait_bound([second, third])
    require_good([first, second, third], tmp_path)


def test_a_pod_of_a_higher_priority_takes_the_place_of_a_lower_one(
    bare: Cluster, node: Node, behind: Behind, tmp_path: Path
) -> None:
    node("n1")
    bare.api.create(PRIORITY_CLASSES.at(), {"metadata": {"name": "high"}, "value": 1000, "description": "for a test"})
    low = [shared(bare, f"low-{number}", 1000) for number in range(2)]
    wait_bound(low)
    high = shared(bare, "high", 1000, priorityClassName="high")
    bare.api.delete(PRIORITY_CLASSES.at(name="high"))
    until("one of them leaves", lambda: None if leaving(low) else "none does", 30)
    (victim,) = leaving(low)
    victim.delete_and_wait(grace_s=0)  # no kubelet exists that would end it
    wait_bound([high])
    (stays,) = [pod for pod in low if pod is not victim]
    require_good([high, stays], tmp_path)


def leaving(pods: Sequence[Pod]) -> list[Pod]:
    return [pod for pod in pods if "deletionTimestamp" in pod.refresh()["metadata"]]
