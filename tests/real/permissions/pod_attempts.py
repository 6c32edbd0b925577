"""Every way to write annotations of pods, as a table: on a pending pod, and on a bound one with its allocation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from partage_plugins.api.keys import ALLOCATION, GPU_MILLI, SIGNATURE
from rig.client.api import Patch
from rig.client.cluster import Cluster
from rig.client.manifests import a_container, a_pod
from rig.client.resources import PODS, Json, Objects
from rig.identity.people import TEAM

Attempt = Callable[[Cluster], object]
WAITS, GRANTED = "waits", "granted"
SHARE = {GPU_MILLI: "500"}
OWNED = {ALLOCATION: "of-the-scheduler", SIGNATURE: "of-the-scheduler"}
FORGED = {ALLOCATION: "forged"}
_POINTER = "/metadata/annotations/" + ALLOCATION.replace("/", "~1")
DRY = {"dryRun": "All"}


def path(name: str, sub: str | None = None) -> str:
    return PODS.at(TEAM, name, sub)


def patching(target: str, change: Json | Objects, kind: Patch = Patch.MERGE) -> Attempt:
    return lambda who: who.api.patch(target, change, kind)


def creating(pod: Json) -> Attempt:
    return lambda who: who.api.create(PODS.at(TEAM), pod, DRY)


def annotating(sub: str | None, kind: Patch) -> Attempt:
    return patching(path(WAITS, sub), {"metadata": {"annotations": FORGED}}, kind)


def applying(sub: str | None, name: str, annotations: Mapping[str, str]) -> Attempt:
    change = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": dict(annotations)}}
    return patching(path(name, sub), change, Patch.APPLY)


def putting(sub: str | None, name: str, annotations: Mapping[str, str]) -> Attempt:
    def attempt(who: Cluster) -> None:
        now = who.api.get(path(name, sub if sub == "ephemeralcontainers" else None))
        now["metadata"]["annotations"] = dict(annotations)
        who.api.replace(path(name, sub), now)

    return attempt


def binding(target: str, annotations: Mapping[str, str]) -> Attempt:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": WAITS, "namespace": TEAM, "annotations": dict(annotations)},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }
    return lambda who: who.api.create(target, body)


def _ways(sub: str | None) -> dict[str, Attempt]:
    name = f"pods/{sub}" if sub else "pods"
    return {
        f"{name}: write, merge": annotating(sub, Patch.MERGE),
        f"{name}: write, strategic": annotating(sub, Patch.STRATEGIC),
        f"{name}: write, json": patching(
            path(WAITS, sub), [{"op": "add", "path": _POINTER, "value": "forged"}], Patch.JSON
        ),
        f"{name}: write, put": putting(sub, WAITS, FORGED),
        f"{name}: change, merge": patching(path(GRANTED, sub), {"metadata": {"annotations": FORGED}}),
        f"{name}: change, json": patching(
            path(GRANTED, sub), [{"op": "replace", "path": _POINTER, "value": "forged"}], Patch.JSON
        ),
        f"{name}: remove, merge": patching(path(GRANTED, sub), {"metadata": {"annotations": {ALLOCATION: None}}}),
        f"{name}: remove, strategic": patching(
            path(GRANTED, sub), {"metadata": {"annotations": {SIGNATURE: None}}}, Patch.STRATEGIC
        ),
        f"{name}: remove, json": patching(path(GRANTED, sub), [{"op": "remove", "path": _POINTER}], Patch.JSON),
        f"{name}: remove all, merge": patching(path(GRANTED, sub), {"metadata": {"annotations": None}}),
        f"{name}: remove, put": putting(sub, GRANTED, {}),
    }


ALLOCATIONS: Mapping[str, Attempt] = {
    "create": creating(a_pod("new", annotations=FORGED)),
    "create with another key of ours": creating(a_pod("new", annotations={"alloc.partage.dev/of-tomorrow": ""})),
    "create, apply": patching(path("new"), a_pod("new", annotations=FORGED), Patch.APPLY),
    **_ways(None),
    **_ways("status"),
    "pods: write, apply": applying(None, WAITS, FORGED),
    "pods: change, apply": applying(None, GRANTED, FORGED),
    "pods/status: write, apply": applying("status", WAITS, FORGED),
    "bind": binding(path(WAITS, "binding"), FORGED),
    "bind, the older way": binding(f"/api/v1/namespaces/{TEAM}/bindings", FORGED),
}
"""Writes that only the scheduler may do."""

IN_VAIN: Mapping[str, Attempt] = {**_ways("ephemeralcontainers"), **_ways("resize")}
"""The same by subresources where a newer API server accepts no annotations, but older ones do."""

BY_NODE: Mapping[str, Attempt] = {
    name: way for name, way in _ways("status").items() if ": change" in name or ": remove" in name
}
"""Those of the above that NodeRestriction leaves to a node: the status of its own pods."""

_CDI = {f"{prefix}cdi.k8s.io/main": "nvidia.com/gpu=all" for prefix in ("", "nvidia.")}
DEVICES: Mapping[str, Attempt] = {
    how.format(key): way
    for key, value in _CDI.items()
    for how, way in {
        "create with {}": creating(a_pod("new", annotations={key: value})),
        "write {}, strategic": patching(path(WAITS), {"metadata": {"annotations": {key: value}}}, Patch.STRATEGIC),
        "write {}, apply": applying(None, WAITS, {key: value}),
        "write {} by the status": patching(path(WAITS, "status"), {"metadata": {"annotations": {key: value}}}),
        "bind with {}": binding(path(WAITS, "binding"), {key: value}),
        "bind with {}, the older way": binding(f"/api/v1/namespaces/{TEAM}/bindings", {key: value}),
    }.items()
}
"""Devices named to the runtime that bypass every allocation."""

_VISIBLE = {"NVIDIA_VISIBLE_DEVICES": "all"}
OWN_CHOICES: Mapping[str, tuple[Attempt, str]] = {
    "its node": (creating(a_pod("new", node="n1", limits=SHARE)), "cannot name its node itself"),
    "its node, an init container": (
        creating(a_pod("new", node="n1", init_containers=[a_container("first", limits=SHARE)])),
        "cannot name its node itself",
    ),
    "its node, in Volcano's words": (
        creating(a_pod("new", node="n1", limits={"volcano.sh/vgpu-number": "1"})),
        "cannot name its node itself",
    ),
    "its node, apply": (
        patching(path("new"), a_pod("new", node="n1", limits=SHARE), Patch.APPLY),
        "cannot name its node itself",
    ),
    "its cards": (creating(a_pod("new", limits=SHARE, env=_VISIBLE)), "cannot set NVIDIA_VISIBLE_DEVICES"),
    "its cards, another container": (
        creating(a_pod("new", containers=[a_container(limits=SHARE), a_container("side", env=_VISIBLE)])),
        "cannot set NVIDIA_VISIBLE_DEVICES",
    ),
    "its cards, an ephemeral container": (
        patching(
            path(GRANTED, "ephemeralcontainers"),
            {"spec": {"ephemeralContainers": [a_container("debug", env=_VISIBLE)]}},
            Patch.STRATEGIC,
        ),
        "cannot set NVIDIA_VISIBLE_DEVICES",
    ),
}
"""Fields that a pod which asks for shares must leave to the scheduler."""
