"""Faults that trigger our alerts, injected on the rig: each lasts as long as its context.

Each yields the labels that its alert then has.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import partage_base
from partage_base.version import VERSION
from partage_plugins.api import CardId
from partage_plugins.api.keys import CARDS, GPU_MEMORY, GPU_MILLI
from partage_simgpu.driver_root import LIBRARIES
from rig.client.pods import Pod
from rig.client.rights import without_right
from rig.identity.people import SCHEDULER
from rig.images.bases import compiled
from rig.machine.components import away, serving
from rig.nodes.node import Daemon
from support.bytecode import BYTECODE
from support.chain_stage import Chain
from support.crishim_stage import KEYS, allocation, public_file, whole
from support.isolation_stage import ask, broker
from support.machine_image import workloads
from support.simgpu_stage import DRIVER

Labels = Mapping[str, str]
Fault = Callable[[Chain], AbstractContextManager[Labels]]
NODE: Final = "n2"
"""The node for faults of nodes, and for the pods that they need."""
OTHER_VERSION: Final = "99.0.0"
_LEND: Final = Path(__file__).parents[1] / "real/chain/c/lend.c"
_HANDLES: Final = 1000
"""Above a broker's limit for one container."""
_ENDLESS: Final = ("/usr/bin/flood", "--seconds", "100000", "--kernel-us", "3600000000")
_FLOOD: Final = ("/usr/bin/flood", "--seconds", "100000")
_USES_THE_CARD: Final = (
    "import time; from partage_simgpu.client import Cuda; Cuda().allocate(64 << 20); time.sleep(9999)"
)


def start_again(chain: Chain) -> None:
    """Start the scheduler at the address that Prometheus scrapes."""
    chain.scheduler.start("--metrics-address", chain.scheduler_address)


def card(chain: Chain) -> CardId:
    return chain.advertisers[NODE].cards()[0].id


def pod_there(chain: Chain, name: str, milli: int, gib: int = 4, **said: Any) -> Pod:
    """A running pod with a part of the node's first card."""
    limits = {GPU_MILLI: str(milli), GPU_MEMORY: f"{gib}Gi"}
    return chain.pod(name, limits=limits, annotations={CARDS: card(chain)}, **said).wait_running()


@contextmanager
def no_scheduler(chain: Chain) -> Generator[Labels]:
    chain.scheduler.kill()
    try:
        yield {}
    finally:
        start_again(chain)


@contextmanager
def out_of_date(chain: Chain) -> Generator[Labels]:
    """Forbid watching a kind and cut its connections, because a running watch would not notice."""
    with without_right(chain.rig.cluster, SCHEDULER, "resourcequotas"):
        port = urlsplit(chain.rig.control.server).port
        found = subprocess.run(("ss", "-Htnp", "dport", "=", str(port)), capture_output=True, text=True, check=True)
        for line in (line.split() for line in found.stdout.splitlines() if f"pid={chain.scheduler.pid}," in line):
            address, _, own = line[3].rpartition(":")
            subprocess.run(("ss", "-K", "src", address, "sport", "=", own), capture_output=True, check=True)
        yield {"kind": "resourcequotas"}


@contextmanager
def bindings_fail(chain: Chain) -> Generator[Labels]:
    with without_right(chain.rig.cluster, SCHEDULER, "pods/binding"):
        chain.pod("unbound", limits={GPU_MILLI: "100", GPU_MEMORY: "1Gi"})
        yield {}


@contextmanager
def pod_waits(chain: Chain) -> Generator[Labels]:
    pod = chain.pod("large", limits={GPU_MILLI: "1000", GPU_MEMORY: "900Gi"})
    yield {}
    pod.delete_and_wait()


@contextmanager
def not_in_force(chain: Chain) -> Generator[Labels]:
    with away(chain.rig.nodes[NODE].newest("broker")):
        yield {"node": NODE, "reason": "no-broker"}


@contextmanager
def lacks_key(chain: Chain) -> Generator[Labels]:
    """The node has another key instead."""
    folder = chain.rig.nodes[NODE].machine.path(KEYS)
    (had,) = folder.iterdir()
    kept, (name, text) = had.read_text(), public_file(Ed25519PrivateKey.generate())
    other = folder / Path(name).name
    other.write_text(text)
    had.unlink()
    try:
        yield {"node": NODE}
    finally:
        had.write_text(kept)
        other.unlink()


@contextmanager
def refused(chain: Chain) -> Generator[Labels]:
    """A pod whose allocation is signed with an untrusted key."""
    pod = chain.pod("forged", limits={GPU_MILLI: "1000"}, scheduler="nobody")
    wanted = allocation(pod, whole(card(chain)), node=NODE)
    chain.rig.cluster.bind(pod, NODE, wanted, signed_by=Ed25519PrivateKey.generate())
    yield {"node": NODE}
    pod.delete_and_wait()


@contextmanager
def card_used_by_nobody(chain: Chain) -> Generator[Labels]:
    """A process of the node itself uses a card that a pod holds."""
    pod = pod_there(chain, "train", 300)
    assert ask(pod, "take 100") == "took 100"
    env = {**BYTECODE, "LD_LIBRARY_PATH": f"{DRIVER}/{LIBRARIES}"}
    process = chain.rig.nodes[NODE].run(
        Daemon("past-partage", (sys.executable, "-P", "-c", _USES_THE_CARD), lambda _: None, env)
    )
    try:
        yield {"node": NODE, "kind": "ProcessOfNobody"}
    finally:
        process.kill()
        pod.delete_and_wait()


@contextmanager
def guarantee_missed(chain: Chain) -> Generator[Labels]:
    """A kernel that does not end, beside work that wants all of its share."""
    chain.rig.registry.push(workloads(), "workloads")
    endless = pod_there(chain, "endless", 100, image="workloads", command=_ENDLESS)
    missing = pod_there(chain, "train", 900, image="workloads", command=_FLOOD)
    yield {"node": NODE, "namespace": missing.namespace, "pod": missing.name}
    for pod in (endless, missing):
        pod.delete_and_wait(grace_s=0)


@contextmanager
def broker_at_limit(chain: Chain) -> Generator[Labels]:
    """A container that creates more memory handles than a broker tracks for one."""
    program = compiled(_LEND, flags=("-std=gnu11", "-ldl"))
    chain.rig.registry.push(workloads().with_files({"/usr/bin/lend": program}), "lend")
    pod = pod_there(chain, "lender", 300, image="lend", command=("/usr/bin/lend", str(_HANDLES)))
    yield {"node": NODE}
    pod.delete_and_wait(grace_s=0)


@contextmanager
def card_lost(chain: Chain) -> Generator[Labels]:
    advertiser, lost = chain.advertisers[NODE], card(chain)
    advertiser.tell_driver("lose 0")
    try:
        yield {"node": NODE, "device_uuid": lost}
    finally:
        advertiser.tell_driver("restore 0")


@contextmanager
def cards_paused(chain: Chain) -> Generator[Labels]:
    """Pauses the cards without ending the pause."""
    machine, asks = chain.rig.nodes[NODE].machine, (sys.executable, "-P", "-m", "partage_cli", "node")
    machine.run(*asks, "pause", "--wait", "0")
    try:
        yield {"node": NODE}
    finally:
        machine.run(*asks, "resume", "--wait", "0")
        machine.run("rmdir", "/run/partage/advertiser/pause")


@contextmanager
def other_version(chain: Chain) -> Generator[Labels]:
    """The same broker, except for the version that it reports."""
    folder = Path(chain.rig.nodes[NODE].machine.place.run_folder) / "another"
    shutil.copytree(Path(partage_base.__file__).parent, folder / "partage_base")
    file = folder / "partage_base/version.py"
    file.write_text(file.read_text().replace(VERSION, OTHER_VERSION))
    daemon = broker(node=NODE)
    other = replace(daemon, name="another-broker", env={**daemon.env, "PYTHONPATH": str(folder)})
    with away(chain.rig.nodes[NODE].newest("broker")), serving(chain.rig.nodes[NODE].daemon(other)):
        yield {}
    shutil.rmtree(folder)


FAULTS: Final[Mapping[str, Fault]] = {
    "PartageSchedulerOutOfDate": out_of_date,
    "PartageBindingsFail": bindings_fail,
    "PartagePodsWait": pod_waits,
    "PartageNodeNotInForce": not_in_force,
    "PartageNodeLacksKey": lacks_key,
    "PartageContainersRefused": refused,
    "PartageLimitNotHeld": card_used_by_nobody,
    "PartageGuaranteeMissed": guarantee_missed,
    "PartageBrokerAtLimit": broker_at_limit,
    "PartageCardLost": card_lost,
    "PartageCardDegraded": cards_paused,
    "PartageVersionsDiffer": other_version,
    "PartageNoSchedulerLeads": no_scheduler,
}
"""Faults by alert. PartageMetricsCut is missing: it needs more pods or containers than a rig can have."""
