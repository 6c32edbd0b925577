"""Delay that a claim adds to the start of a pod, and kubelet's wait for the driver to prepare one.

A cluster like a managed one: kube-scheduler allocates, kubelet calls containerd directly. A pod with a claim and a
plain one start alternately, with the same image on the same node; the figure is the difference, from a pod's create to
its program's first instruction. Prepares are requested as kubelet does, for allocated claims, alternately with the one
request that each sends to the API server; the figure is the difference. Then two pods flood one card, and each one's
part of the time is compared with its claim.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Final

from grpclib.client import Channel, UnaryUnaryMethod

from bench.harness import Bench
from partage_base.kube import Access, ApiServer, resource_claim_path
from partage_dra.claims import Claim
from partage_dra.kubelet import messages
from partage_plugins.api.places import DRA_SOCKET
from rig.client.pods import Pod
from rig.client.resources import Json
from rig.identity.people import TEAM
from support.claim_objects import devices, request
from support.dra_stage import DraStage, claimed
from support.machine_image import with_driver_program, workloads

PAIRS, SMOKE_PAIRS = 60, 1
WARM_UP: Final = 1
CLAIMS, SMOKE_CLAIMS = 40, 2
PROGRAM: Final = Path(__file__).parents[1] / "real/chain/c/first.c"
FIRST: Final = "/usr/bin/first"
IMAGE: Final = "first"
FLOODING: Final = "workloads"
SHARES: Final = (700, 300)
SETTLE_S, SMOKE_SETTLE_S = 25.0, 3.0
MOST_POINTS_OFF: Final = 2.0
MOST_ADDED_MS: Final = 60.0
MOST_PREPARE_MS: Final = 8.0
"""Beyond the request to the API server."""
_DRA: Final = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
_NS_IN_MS: Final = 1e6


def started_ms(stage: DraStage, name: str, *, with_claim: bool) -> float:
    fields: dict[str, Any] = {"image": IMAGE, "command": [FIRST, "start"]}
    began_ns = time.time_ns()
    pod = stage.pod(name, devices(request(10, "16Mi")), **fields) if with_claim else stage.create_pod(name, **fields)
    pod.wait_succeeded()
    said = pod.logs().strip()
    pod.delete_and_wait(grace_s=0)
    return (int(said) - began_ns) / _NS_IN_MS


async def asked_ms(server: ApiServer, claim: Json) -> float:
    """The time of the one request of a prepare."""
    path = resource_claim_path(TEAM, claim["metadata"]["name"])
    began = time.perf_counter()
    await server.get(path, Claim)
    return 1e3 * (time.perf_counter() - began)


async def prepared_ms(stage: DraStage, claims: list[Json]) -> list[tuple[float, float]]:
    """Prepares and unprepares each claim once; returns each time with that of the request to the API server."""
    channel = Channel(path=str(stage.machine.path(f"/{DRA_SOCKET}")))
    access = Access.find(stage.rig.cluster.kubectl.kubeconfig)
    found = list[tuple[float, float]]()
    async with ApiServer(access, user_agent="bench-dra") as server:
        await asked_ms(server, claims[0])  # the driver has an open connection, too
        try:
            found += [(await prepare_ms(stage, channel, claim), await asked_ms(server, claim)) for claim in claims]
        finally:
            channel.close()
    return found


async def prepare_ms(stage: DraStage, channel: Channel, claim: Json) -> float:
    asked: Any = messages.ClaimsRequest()
    meta = claim["metadata"]
    asked.claims.add(namespace=TEAM.encode(), name=meta["name"].encode(), uid=meta["uid"].encode())
    began = time.perf_counter()
    answer: Any = await UnaryUnaryMethod(
        channel, f"{_DRA}NodePrepareResources", messages.ClaimsRequest, messages.PrepareResponse
    )(asked)
    took_ms = 1e3 * (time.perf_counter() - began)
    (entry,) = answer.claims
    if entry.value.error or stage.told(meta["uid"]) is None:
        raise AssertionError(f"claim {meta['name']} is not in force: {entry.value.error}")
    await UnaryUnaryMethod(
        channel, f"{_DRA}NodeUnprepareResources", messages.ClaimsRequest, messages.UnprepareResponse
    )(asked)
    return took_ms


def allocated(stage: DraStage, count: int) -> list[Json]:
    """Claims with a copy of kube-scheduler's allocation of a first one."""
    first: Pod = stage.pod("model", devices(request(10, "16Mi")))
    first.wait_running()
    allocation = stage.claim_of(first)["status"]["allocation"]
    found = list[Json]()
    for number in range(count):
        stage.claim(f"claim-{number}", devices(request(10, "16Mi")))
        found.append(stage.allocate(f"claim-{number}", allocation))
    first.delete_and_wait(grace_s=0)
    return found


def points_off(stage: DraStage, settle_s: float) -> dict[int, float]:
    """By share: how far a flooding pod's part of the card's time is from it, in hundredths of the card."""
    stage.rig.registry.push(workloads(), FLOODING)
    command = ["/usr/bin/flood", "--seconds", "100000"]
    pods = {
        share: stage.pod(f"flood-{share}", devices(request(share, "4Gi")), image=FLOODING, command=command)
        for share in SHARES
    }
    for pod in pods.values():
        pod.wait_running()
    claims = {share: stage.claim_of(pod) for share, pod in pods.items()}
    uids = {share: claim["metadata"]["uid"] for share, claim in claims.items()}
    cards = {claim["status"]["allocation"]["devices"]["results"][0]["device"] for claim in claims.values()}
    if len(cards) != 1:
        raise AssertionError(f"they are on {len(cards)} cards, so neither keeps time from the other")
    time.sleep(settle_s)
    return {share: abs(_got(stage, uid) * 100 - share / 10) for share, uid in uids.items()}


def _got(stage: DraStage, uid: str) -> float:
    told = stage.told(uid)
    if told is None or told.cards[0].time is None or not told.cards[0].time.timeslices:
        raise AssertionError(f"claim {uid} is not metered: {told}")
    return told.cards[0].time.got.s10


def main() -> int:
    bench = Bench.from_argv("dra")
    pairs, count = (SMOKE_PAIRS, SMOKE_CLAIMS) if bench.smoke else (PAIRS, CLAIMS)
    with claimed(say=lambda _line: None, reads_all=True) as stage:
        stage.wait_published()
        stage.rig.registry.push(with_driver_program(FIRST, PROGRAM), IMAGE)
        rounds = [
            tuple(started_ms(stage, f"{kind}-{number}", with_claim=kind == "claim") for kind in ("plain", "claim"))
            for number in range(pairs + WARM_UP)
        ][WARM_UP:]
        prepares = asyncio.run(prepared_ms(stage, allocated(stage, count)))
        stage.clear()  # otherwise they hold room, and the next two would not share one card
        off = points_off(stage, SMOKE_SETTLE_S if bench.smoke else SETTLE_S)
    plain, claim = (statistics.median(each[place] for each in rounds) for place in (0, 1))
    bench.figure("plain_pod_ms", plain)
    bench.figure("claim_pod_ms", claim)
    bench.figure("median_of_pairs_ms", statistics.median(claim - plain for plain, claim in rounds))
    bench.bar("a pod's first instruction, beyond a plain pod's", claim - plain, at_most=MOST_ADDED_MS, unit="ms")
    bench.figure("prepare_ms", statistics.median(prepare for prepare, _ in prepares))
    bench.figure("its_question_ms", statistics.median(asked for _, asked in prepares))
    beyond = statistics.median(prepare - asked for prepare, asked in prepares)
    bench.bar("a prepare, beyond its question to the API server", beyond, at_most=MOST_PREPARE_MS, unit="ms")
    for share, points in off.items():
        bench.bar(f"time of a claim of {share}, beside it", points, at_most=MOST_POINTS_OFF, unit="points")
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
