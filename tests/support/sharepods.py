"""SharePods in tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from partage_plugins.api import GPU
from partage_plugins.api.keys import ALLOCATION
from partage_plugins.codecs import decode_allocation
from rig.client.cluster import Cluster
from rig.client.manifests import NO_IMAGE
from rig.client.pods import ObjectEvent, Pod, events_of
from rig.client.resources import PODS, Json, Resource
from rig.client.wait import PATIENCE_S, until
from rig.errors import Refused
from rig.identity.people import SHAREPODS, TEAM
from rig.identity.permissions import FOLDER
from support.scheduler_process import SchedulerProcess

SHAREPODS_PATH: Final = Resource("kubeshare.nthu/v1", "sharepods")
GPUID: Final = "kubeshare/GPUID"


def installed(cluster: Cluster) -> None:
    """Install what we deliver for SharePods, except for their controller."""
    for file in ("crd", "admission", "rbac"):
        cluster.kubectl.run("apply", "-f", str(FOLDER / f"sharepods/{file}.yaml"))

    def why_not() -> str | None:
        try:
            cluster.api.get(SHAREPODS_PATH.at())
        except Refused as refused:
            return str(refused)
        return None

    until("SharePods are served", why_not)


def controller_of(cluster: Cluster, root: Path, *flags: str) -> SchedulerProcess:
    """The controller as a process in the scheduler's folder, not yet started."""
    kubeconfig = cluster.as_account(SHAREPODS).kubectl.kubeconfig
    return SchedulerProcess(kubeconfig, root, *flags, name="sharepods", module="partage_scheduler.sharepods")


def uninstalled(cluster: Cluster) -> None:
    for file in ("rbac", "admission", "crd"):
        cluster.kubectl.run("delete", "-f", str(FOLDER / f"sharepods/{file}.yaml"))


def a_sharepod(name: str, request: str = "", *, annotations: Mapping[str, str] | None = None, **spec: Any) -> Json:
    """A SharePod as in KubeShare's documentation; `request` is a part of a card."""
    asks = {"kubeshare/gpu_request": request, "kubeshare/gpu_limit": "1.0", "kubeshare/gpu_mem": "1073741824"}
    container = {"name": "cuda", "image": NO_IMAGE, "resources": {"limits": {"cpu": 1, "memory": "500Mi"}}}
    return {
        "apiVersion": "kubeshare.nthu/v1",
        "kind": "SharePod",
        "metadata": {"name": name, "annotations": {**(asks if request else {}), **(annotations or {})}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **spec},
    }


def by_hand(name: str, request: str, *, node: str, gpuid: str, **spec: Any) -> Json:
    return a_sharepod(name, request, annotations={GPUID: gpuid}, nodeName=node, **spec)


class Stage:
    """The SharePods of one namespace."""

    def __init__(self, cluster: Cluster, namespace: str = TEAM) -> None:
        self.cluster, self.namespace = cluster, namespace

    def create(self, manifest: Json) -> str:
        return str(self.cluster.api.create(SHAREPODS_PATH.at(self.namespace), manifest)["metadata"]["name"])

    def share(self, name: str) -> Json:
        return self.cluster.api.get(SHAREPODS_PATH.at(self.namespace, name))

    def delete(self, name: str) -> None:
        self.cluster.api.delete(SHAREPODS_PATH.at(self.namespace, name))

    def pod(self, name: str) -> Pod | None:
        try:
            return self.cluster.pods.get(self.namespace, name)
        except Refused as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    def card(self, name: str) -> str:
        """The card of its pod."""
        pod = self.pod(name)
        assert pod is not None
        allocation = decode_allocation(pod.annotations[ALLOCATION], [GPU])
        (card,) = {grant.card for grants in allocation.of(GPU).values() for grant in grants}
        return card

    def condition(self, name: str) -> tuple[str, str, str]:
        conditions = self.share(name).get("status", {}).get("conditions", [])
        found: Json = next((each for each in conditions if each["type"] == "Synced"), {})
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    def wait(self, what: str, name: str, holds: Callable[[Json], bool], within_s: float = PATIENCE_S) -> Json:
        def why_not() -> str | None:
            return None if holds(share := self.share(name)) else str(share)

        until(f"SharePod {name} {what}", why_not, within_s)
        return self.share(name)

    def wait_placed(self, name: str) -> tuple[str, str]:
        """Wait until it reports its node, its GPUID and its card; returns node and GPUID."""

        def is_placed(share: Json) -> bool:
            status, notes = share.get("status", {}), share["metadata"].get("annotations", {})
            is_bound = bool(status.get("BoundDeviceID"))
            return is_bound and bool(share["spec"].get("nodeName")) and bool(notes.get(GPUID))

        share = self.wait("is placed", name, is_placed)
        return share["spec"]["nodeName"], share["metadata"]["annotations"][GPUID]

    def wait_somewhere(self, name: str) -> None:
        """Wait until it is placed, or has a status that says why not: the controller is running."""
        self.wait("was looked at", name, lambda share: bool(share.get("status")))

    def wait_condition(self, name: str, reason: str) -> str:
        """Wait until its condition has that reason; returns the message."""
        self.wait(f"says {reason}", name, lambda _: self.condition(name)[1] == reason)
        return self.condition(name)[2]

    def wait_gone(self, name: str, within_s: float = PATIENCE_S) -> None:
        until(f"pod {name} is gone", lambda: None if self.pod(name) is None else "it is there", within_s)

    def ends(self, name: str, phase: str) -> None:
        """Set the phase, as kubelet would."""
        self.cluster.api.patch(PODS.at(self.namespace, name, "status"), {"status": {"phase": phase}})

    def events(self, name: str) -> list[ObjectEvent]:
        return events_of(self.cluster.api, self.share(name))
