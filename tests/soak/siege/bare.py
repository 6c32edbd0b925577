"""Containers without a grant that ask NVIDIA's runtime for cards in every way that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rig.client.manifests import a_pod
from rig.client.pod_status import containers, state
from rig.client.pods import Pod
from rig.errors import Refused
from rig.identity.people import ALICE, TEAM
from soak.siege.verdicts import Verdict, Wrong
from support.chain_stage import Chain

_WAYS: Final = {
    "variable": {"env": {"NVIDIA_VISIBLE_DEVICES": "all"}},
    "annotation": {"annotations": {"cdi.k8s.io/mine": "nvidia.com/gpu=all"}},
    "own-annotation": {"annotations": {"nvidia.cdi.k8s.io/mine": "nvidia.com/gpu=all"}},
}
_MOUNTED: Final = {"mount": "/all", "bare-mount": "all", "cdi-mount": "cdi/nvidia.com/gpu/all"}
"""Paths below the folder that NVIDIA's toolkit checks."""
_FOLDER: Final = "/var/run/nvidia-container-devices"
_LOOK: Final = """
ls /dev | grep -c nvidia
grep -c nvidia-container-devices /proc/self/mountinfo
echo "${NVIDIA_VISIBLE_DEVICES:-void}"
"""
_SEES_NOTHING: Final = ["0", "0", "void"]
MUST_BE_REFUSED: Final = frozenset(("annotation", "own-annotation"))


class Bare:
    """All of them; the user creates them, on a node with cards."""

    def __init__(self, chain: Chain) -> None:
        self._pods: dict[str, Pod] = {}
        self.refused: set[str] = set()
        cluster = chain.rig.cluster.as_person(ALICE)
        for name, said in {**_WAYS, **{name: _mounts(rest) for name, rest in _MOUNTED.items()}}.items():
            fields: dict[str, Any] = {
                "image": "busybox",
                "command": ["sleep", "100000"],
                "requests": {"cpu": "1m"},
                **said,
            }
            try:
                self._pods[name] = cluster.pods.create(TEAM, a_pod(f"bare-{name}", node="n1", **fields))
            except Refused:
                self.refused.add(name)

    @property
    def running(self) -> list[str]:
        return [name for name, pod in self._pods.items() if _runs(pod)]

    def wrong(self) -> Iterator[Wrong]:
        for name in sorted(MUST_BE_REFUSED - self.refused):
            yield Wrong(Verdict.REFUSED, f"the user could ask for cards by the {name}")
        for name in self.running:
            seen = self._pods[name].tried("/bin/sh", "-c", _LOOK).out.split()
            if name in MUST_BE_REFUSED or seen != _SEES_NOTHING:
                yield Wrong(Verdict.NOTHING, f"a container that was given nothing asks by the {name} and sees {seen}")


def _mounts(rest: str) -> dict[str, Any]:
    volume = {"name": "asks", "hostPath": {"path": "/tmp"}}  # noqa: S108  (of the node; what it holds does not matter)
    return {
        "more": {"volumeMounts": [{"name": "asks", "mountPath": _FOLDER + rest}]},
        "spec": {"volumes": [volume]},
    }


def _runs(pod: Pod) -> bool:
    return state(containers(pod.refresh()).get("main", {}))[0] == "running"
