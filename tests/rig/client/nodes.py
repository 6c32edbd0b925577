"""Nodes: real ones that kubelets register, and fake ones."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from rig.client import pod_status
from rig.client.kubectl import Speaker
from rig.client.resources import NODES, Json
from rig.client.wait import PATIENCE_S, until
from rig.errors import Refused


class Nodes:
    def __init__(self, speaker: Speaker) -> None:
        self._api = speaker.api

    def create(self, manifest: Json) -> Json:
        """Create a node object without a machine; the API server adds the not-ready taint."""
        return self._api.create(NODES.at(), manifest)

    def get(self, name: str) -> Json:
        return self._api.get(NODES.at(name=name))

    def names(self) -> list[str]:
        return sorted(node["metadata"]["name"] for node in self._api.list(NODES.at()))

    def allocatable(self, name: str, resource: str) -> int:
        """The amount in the node's status, which lags behind kubelet's state."""
        return int(self.get(name)["status"]["allocatable"].get(resource, "0"))

    def wait_allocatable(self, name: str, resource: str, number: int) -> None:
        def why_not() -> str | None:
            found = self.allocatable(name, resource)
            return None if found == number else f"the node has {found}"

        until(f"node {name} has {number} of {resource}", why_not)

    def annotations(self, name: str) -> dict[str, str]:
        return dict(self.get(name)["metadata"].get("annotations", {}))

    def annotate(self, name: str, annotations: Mapping[str, str | None]) -> Json:
        return self._api.patch(NODES.at(name=name), {"metadata": {"annotations": dict(annotations)}})

    def delete(self, name: str) -> None:
        """Delete the object; kubelet recreates it only when it starts."""
        self._api.delete(NODES.at(name=name))

    def wait_ready(self, name: str, within_s: float = PATIENCE_S) -> None:
        """Wait until the node is Ready and has no taints: its first taint is removed a moment later."""
        until(f"node {name} is ready", lambda: self.why_not_ready(name), within_s)

    def why_not_ready(self, name: str) -> str | None:
        try:
            node = self.get(name)
        except Refused as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                return "it has not registered"
            raise
        ready = pod_status.condition(node, "Ready")
        taints = [taint["key"] for taint in node["spec"].get("taints", [])]
        if ready.get("status") != "True":
            return f"Ready is {ready.get('status')}: {ready.get('reason')}: {ready.get('message')}"
        return f"it has the taints {', '.join(taints)}" if taints else None
