"""How fast a backlog of pods is placed on a large cluster: the daemon, a real API server and etcd, all on this machine.

Nodes have eight cards each, pods ask for parts of cards, one in ten for nothing but CPU. The daemon starts when all of
them are there; a watch tells when the first and the last were bound. What came of it is verified: every allocation's
signature, every card's share and memory.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.harness import Bench
from partage_base.keyring import KeyFolders, add_pair, load_public_keys
from partage_base.kube import Access, ApiServer, Changed, leases_path, micro_time, nodes_path, pods_path
from partage_plugins.codecs import decode_allocation, encode_inventory, verify
from partage_plugins.vocabulary import GPU, GpuPart, Inventory, Ready
from partage_plugins.vocabulary.keys import ALLOCATION, GPU_MILLI, INVENTORY, SIGNATURE
from partage_scheduler.objects import ApiPod
from rig.control.plane import ControlPlane
from rig.control.running import control_plane
from rig.control.settings import FOR_BENCHMARKS
from rig.identity.people import OUR_NAMESPACE, SCHEDULER, TEAM
from rig.talking.cluster import Cluster
from rig.talking.manifests import a_node, a_pod
from support.gpu_fleet import GIB, card

NODES, PODS = 5_000, 10_000
SMOKE_NODES, SMOKE_PODS = 20, 60
CARDS: Final = 8
MILLIS: Final = (125, 250, 250, 500, 500, 500, 700, 1000, 1000, 0)
AT_ONCE: Final = 16
PATIENCE_S: Final = 300.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Seen(msgspec.Struct):
    """As much of a pod as tells that it is bound."""

    spec: Spec


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


@dataclass(frozen=True)
class Outcome:
    """What one run took."""

    seconds: float
    """From the first binding to the last."""
    start_seconds: float
    """From the start of the process to the first binding."""
    cpu_us: float
    """Of the daemon, for each pod, its start left out."""
    resident_mib: float


async def measured(control: ControlPlane, root: Path, nodes: int, pods: int) -> tuple[Outcome, Counter[str]]:
    """Fills a cluster, lets the daemon place all pods, and verifies what it did."""
    cluster = Cluster(control)
    account = cluster.as_account(SCHEDULER).identity
    add_pair(KeyFolders.at_root(root), Ed25519PrivateKey.generate())
    admin = await asyncio.to_thread(Access.find, control.identities.kubeconfig(cluster.identity, control.server))
    async with ApiServer(admin, user_agent="bench", connections=AT_ONCE, deadline_s=60) as server:
        await _fill(server, nodes, pods)
        version = (await server.list(pods_path(), Seen, limit=500)).resource_version
        with _daemon(control.identities.kubeconfig(account, control.server), root) as daemon:
            outcome = await _watched(server, version, daemon, pods)
        found = (await server.list(pods_path(TEAM), ApiPod, limit=1000)).items
    cluster.close()
    return outcome, verified(found, root)


def verified(pods: Iterable[ApiPod], root: Path) -> Counter[str]:
    """What there is; raises where a signature is wrong or a card is over-committed."""
    keys, shares, memory = load_public_keys(KeyFolders.at_root(root).public).keys, Counter[str](), Counter[str]()
    counts = Counter[str]()
    for pod in pods:
        counts["bound" if pod.node else "waits"] += 1
        notes = pod.metadata.annotations
        if ALLOCATION not in notes:
            continue
        verify(notes[ALLOCATION], notes[SIGNATURE], keys)
        allocation = decode_allocation(notes[ALLOCATION], [GPU])
        if (allocation.pod, allocation.node) != (pod.uid, pod.node):
            raise AssertionError(f"pod {pod.name} has another one's allocation")
        for grant in (grant for each in allocation.of(GPU).values() for grant in each):
            shares[grant.card] += grant.share_milli
            memory[grant.card] += grant.memory_bytes
    if max(shares.values(), default=0) > 1000 or max(memory.values(), default=0) > 16 * GIB:
        raise AssertionError("a card is over-committed")
    counts["cards in use"] = len(shares)
    return counts


async def _fill(server: ApiServer, nodes: int, pods: int) -> None:
    def node(number: int) -> list[tuple[str, dict[str, Any]]]:
        name = f"n{number:04}"
        part = GpuPart(driver="580", cuda="13.0", cards=tuple(card(f"{name}-{place}") for place in range(CARDS)))
        inventory = Inventory(kinds={GPU.name: part}, ready=Ready(crishim=True, broker=True))
        beat = {"holderIdentity": name, "leaseDurationSeconds": 600, "renewTime": micro_time(datetime.now(UTC))}
        return [
            (nodes_path(), a_node(name, annotations={INVENTORY: encode_inventory(inventory).decode()})),
            (leases_path(OUR_NAMESPACE), {"metadata": {"name": name}, "spec": beat}),
        ]

    def pod(number: int) -> list[tuple[str, dict[str, Any]]]:
        milli = MILLIS[number % len(MILLIS)]
        limits = {"cpu": "100m", **({GPU_MILLI: str(milli)} if milli else {})}
        return [(pods_path(TEAM), a_pod(f"p{number:05}", scheduler="partage-scheduler", limits=limits))]

    await _created(server, node, nodes)
    await _created(server, pod, pods)


async def _created(server: ApiServer, make: Callable[[int], list[tuple[str, dict[str, Any]]]], count: int) -> None:
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            for path, body in make(number):
                await server.create(path, body, msgspec.Raw)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


async def _watched(server: ApiServer, version: str, daemon: subprocess.Popen[bytes], pods: int) -> Outcome:
    started, bound, first, first_cpu_s = time.perf_counter(), 0, 0.0, 0.0
    async with asyncio.timeout(PATIENCE_S):
        async for event in server.watch(pods_path(), Seen, since=version, lasts_s=PATIENCE_S):
            if isinstance(event, Changed) and event.item.spec.node_name:
                bound += 1
                if bound == 1:
                    first, first_cpu_s = time.perf_counter(), _cpu_s(daemon.pid)
                if bound >= pods:
                    break
    now, cpu_s = time.perf_counter(), _cpu_s(daemon.pid)
    return Outcome(now - first, first - started, (cpu_s - first_cpu_s) / pods * 1e6, _resident_mib(daemon.pid))


@contextmanager
def _daemon(kubeconfig: Path, root: Path) -> Generator[subprocess.Popen[bytes]]:
    log = root / "scheduler.log"
    command = [sys.executable, "-m", "partage_scheduler", "--kubeconfig", str(kubeconfig), "--root", str(root)]
    with log.open("wb") as file:
        daemon = subprocess.Popen([*command, "--silent-after-s", "3600"], stderr=file, stdout=file)
    try:
        yield daemon
    except BaseException:
        sys.stderr.write(log.read_text()[-4000:])
        raise
    finally:
        daemon.terminate()
        daemon.wait(30)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def main() -> int:
    """One run."""
    bench = Bench.from_argv("scheduler", libraries=["msgspec", "numpy", "aiohttp", "uvloop"])
    nodes, pods = (SMOKE_NODES, SMOKE_PODS) if bench.smoke else (NODES, PODS)
    with control_plane(FOR_BENCHMARKS, say=_quiet) as control, tempfile.TemporaryDirectory() as root:
        outcome, counts = bench.run(measured(control, Path(root), nodes, pods))
    bench.engaged("all pods are bound", counts["bound"] == pods)
    bench.figure("cards_in_use", counts["cards in use"])
    bench.figure("start_seconds", outcome.start_seconds)
    bench.figure("daemon_cpu_us_for_each_pod", outcome.cpu_us)
    bench.bar("pods are bound", pods / outcome.seconds, at_least=1000, unit="pods/s")
    bench.bar("resident memory", outcome.resident_mib, at_most=600, unit="MiB")
    return bench.finish()


def _quiet(_line: str) -> None:
    pass


if __name__ == "__main__":
    raise SystemExit(main())
