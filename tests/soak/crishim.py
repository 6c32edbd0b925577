"""Pods come and go through crishim for half an hour; at the end it holds no more than after the start.

    make soak-crishim            # 30 minutes
    tools/named soak crishim --minutes 5

One node, a real kubelet. Every round makes pods of several shapes, some with cards, some that are refused, execs into
them, reads their logs, and ends them; now and then crishim reloads its configuration. After the first minutes, and at
the end, all pods are deleted, crishim's collector gets time to run, and crishim's holdings are counted.
"""

from __future__ import annotations

import signal
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_crishim.collector import EVERY_S
from rig.client.pods import Pod
from rig.client.wait import until
from rig.rig import RigSettings, running
from soak.harness import ended, options, say, steps
from support.crishim_stage import NODE, OWN, Stage, half, install_devices, node_settings, whole
from support.procfs import descriptors, status
from unit.gpu_node.nodes import FIRST, SECOND

WARM_UP_SHARE: Final = 0.2
MOST_WARM_UP_MINUTES: Final = 5.0
MOST_GROWTH_KIB: Final = 4096
"""Growth of memory between both counts that an allocator may keep."""
RELOAD_EVERY: Final = 20
_OPEN: Final = "partage_crishim_open_connections"


@dataclass(frozen=True)
class Holdings:
    descriptors: int
    threads: int
    connections: int
    resident_kib: int
    plugins_resident_kib: int
    plugins_descriptors: int
    reserved: int
    records: int
    floors: int


@dataclass
class Churn:
    rounds: int = 0
    pods: int = 0
    refused: int = 0
    execs: int = 0
    reloads: int = 0


def main() -> int:
    minutes = options("crishim", minutes=30.0).minutes
    key = Ed25519PrivateKey.generate()
    with running(RigSettings(nodes={NODE: node_settings(key)}), say=say) as rig:
        install_devices(rig.nodes[NODE].machine)
        stage = Stage(rig, key, rig.nodes[NODE].daemons["crishim"])
        churn = Churn()
        warm_up = min(MOST_WARM_UP_MINUTES, minutes * WARM_UP_SHARE)
        _work(stage, churn, warm_up)
        before = _settled(stage, churn)
        _work(stage, churn, minutes - warm_up)
        after = _settled(stage, churn)
        figures = stage.metrics()
    return _told(before, after, churn, figures)


def _work(stage: Stage, churn: Churn, minutes: float) -> None:
    for _ in steps(minutes, lambda: f"{churn.rounds} rounds, {churn.pods} pods, {_now(stage)}"):
        _round(stage, churn)
        if churn.rounds % RELOAD_EVERY == 0:
            stage.crishim.send(signal.SIGHUP)
            churn.reloads += 1


def _round(stage: Stage, churn: Churn) -> None:
    plain = [stage.idle_pod(), stage.idle_pod(command=["sh", "-c", "seq 1000"]), stage.idle_pod(restart="Always")]
    granted = [stage.granted_pod(whole(FIRST)), stage.granted_pod(whole(SECOND), env={"X": "x" * 1000})]
    refused = [stage.granted_pod(half(FIRST)), stage.granted_pod(whole(FIRST), key=Ed25519PrivateKey.generate())]
    for pod in (plain[0], plain[2], *granted):
        pod.wait_running()
        _look_into(pod, churn)
    plain[1].wait_succeeded()
    for pod in refused:
        stage.refused(pod)
    everyone = (*plain, *granted, *refused)
    for pod in everyone:
        pod.delete()
    for pod in everyone:
        pod.wait_gone()
    stage.rig.cluster.pods.made.clear()
    churn.rounds += 1
    churn.pods += len(everyone)
    churn.refused += len(refused)


def _look_into(pod: Pod, churn: Churn) -> None:
    if churn.rounds % 3 == 0:  # the kubectl for each takes most of the time
        pod.exec("hostname")
        churn.execs += 1
    pod.logs()


def _settled(stage: Stage, churn: Churn) -> Holdings:
    """Holdings after all pods are gone and every component has had time to notice; plugins run, whatever came last."""
    _round(stage, churn)
    until("all containers are gone", lambda: None if not stage.containers() else "some are there", within_s=120)
    until(
        "crishim has collected",
        lambda: str(now) if (now := _now(stage)).records or now.floors else None,
        within_s=EVERY_S * 3,
    )
    return _now(stage)


def _now(stage: Stage) -> Holdings:
    pid = stage.crishim.pid
    child = next(iter(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()), None)
    own = stage.machine.path(OWN)
    return Holdings(
        descriptors=descriptors(pid),
        threads=status(pid, "Threads"),
        connections=int(stage.metrics()[_OPEN]),
        resident_kib=status(pid, "VmRSS"),
        plugins_resident_kib=status(int(child), "VmRSS") if child else 0,
        plugins_descriptors=descriptors(int(child)) if child else 0,
        reserved=_count(own / "reserved"),
        records=_count(own / "records/containers"),
        floors=_count(own / "records/pods"),
    )


def _count(folder: Path) -> int:
    return sum(not path.name.startswith(".") for path in folder.iterdir()) if folder.exists() else 0


def _told(before: Holdings, after: Holdings, churn: Churn, figures: dict[str, float]) -> int:
    was, now = asdict(before), asdict(after)
    leaks = [
        f"{name} leaked: {was[name]} after the start, {now[name]} at the end"
        for name in was
        if now[name] - was[name] > (MOST_GROWTH_KIB if name.endswith("_kib") else 0)
    ]
    if broken := figures["partage_crishim_broken_total"]:
        leaks.append(f"crishim broke {broken:g} times")
    return ended("crishim", leaks, before=was, after=now, churn=asdict(churn))


if __name__ == "__main__":
    raise SystemExit(main())
