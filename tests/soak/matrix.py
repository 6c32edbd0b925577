"""Every Kubernetes with every containerd that partage must work with.

    make rig-matrix                                     # all of it, about ten minutes once the programs are built
    tools/named soak matrix --only kubernetes@1.37.2 --only containerd@1.7.35

In a cluster of each pair one pod shares a card and is limited to its part, and one with a forged allocation is refused.
From Kubernetes 1.36 on a pod also gets its part by a claim, with kubelet directly at its runtime, and keeps it while
others with the claim come and go. critest does not involve kubelet, so it runs once for each containerd, directly and
through crishim in the same order: each spec must end alike.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from partage_plugins.api import PodUid
from partage_plugins.api.keys import GPU_MEMORY, GPU_MILLI
from partage_plugins.codecs import key_id
from rig import critest
from rig.client.pods import Pod
from rig.critest import Critest, Outcome, Run
from rig.errors import RigError
from rig.lone import LoneRuntime, lone_runtime
from rig.programs.catalogue import RELEASES
from soak.harness import ended, say
from support.chain_stage import Chain, chained
from support.claim_objects import devices, request
from support.crishim import SOCKET, crishim, in_front
from support.dra_stage import claimed
from support.isolation_stage import ask

NODE: Final = "n1"
SEED: Final = 1
_KEPT_WITHIN: Final = ("took 100", "cuMemAlloc_v2 2")
_CLAIMS_FROM: Final = (1, 36)
_WORTH_TELLING: Final = 300


@dataclass(frozen=True, kw_only=True)
class PairFound:
    """A pair, by the versions that its node reports, and its failures."""

    kubernetes: str
    containerd: str
    seconds: float
    wrong: str = ""
    claims_wrong: str | None = None
    """None: not tried, since that Kubernetes shares no device among claims."""

    def __str__(self) -> str:
        claims = "not tried" if self.claims_wrong is None else self.claims_wrong or "as they must be"
        return f"kubelet {self.kubernetes}, {self.containerd}: pods {self.wrong or 'as they must be'}; claims {claims}"


@dataclass(frozen=True, kw_only=True)
class CritestFound:
    """The number of specs by result, run directly, and those that ended otherwise through crishim."""

    containerd: str
    seconds: float
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    differ: Sequence[str] = ()
    wrong: str = ""


def main() -> int:
    kubernetes, containerd = _of("kubernetes"), _of("containerd")
    parser = argparse.ArgumentParser(prog="soak matrix", description="every Kubernetes with every containerd")
    known = (*kubernetes, *containerd)
    parser.add_argument("--only", action="append", default=[], choices=known, help="this release; may be said again")
    parser.add_argument("--without-critest", action="store_true", help="pods alone")
    asked = parser.parse_args()
    kubernetes, containerd = _chosen(kubernetes, asked.only), _chosen(containerd, asked.only)
    compared = [] if asked.without_critest else [_compared(release) for release in containerd]
    return _told([_tried(*pair) for pair in product(kubernetes, containerd)], compared)


def _of(component: str) -> Sequence[str]:
    return tuple(name for name, recipe in RELEASES.items() if recipe.name == component)


def _chosen(releases: Sequence[str], only: Sequence[str]) -> Sequence[str]:
    return [release for release in releases if release in only] or releases


def _tried(kubernetes: str, containerd: str) -> PairFound:
    """Failures of one pair are recorded; the others are tried all the same."""
    say(f"\n{kubernetes} with {containerd}")
    began, releases = time.monotonic(), (kubernetes, containerd)
    try:
        with (
            tempfile.TemporaryDirectory() as root,
            chained(Path(root), say=say, nodes=(NODE,), releases=releases) as chain,
        ):
            told = chain.rig.cluster.nodes.get(NODE)["status"]["nodeInfo"]
            kubernetes, containerd = told["kubeletVersion"], told["containerRuntimeVersion"]
            wrong = _pods_wrong(chain)
    except RigError as error:
        wrong = _short(error)
    claims_wrong = _claims_wrong(releases) if _has_claims(releases[0]) else None
    seconds = _since(began)
    return PairFound(
        kubernetes=kubernetes, containerd=containerd, seconds=seconds, wrong=wrong, claims_wrong=claims_wrong
    )


def _has_claims(kubernetes: str) -> bool:
    major, minor, *_ = map(int, kubernetes.partition("@")[2].split("."))
    return (major, minor) >= _CLAIMS_FROM


def _claims_wrong(releases: tuple[str, ...]) -> str:
    """Before 1.37 kubelet releases a claim in use when other pods with it come and go."""
    try:
        with claimed(say=say, releases=releases) as stage:
            stage.claim("kept", devices(request(300, "1Gi")))
            pod = stage.pod("kept-a", claim="kept").wait_running()
            stage.come_and_go("kept")
            took = (ask(pod, "take 100"), ask(pod, "take 2048"))
            stage.clear()
    except RigError as error:
        return _short(error)
    return "" if took == _KEPT_WITHIN else f"a pod whose claim has 1 GiB takes 100 MiB and then 2 GiB: {took}"


def _pods_wrong(chain: Chain) -> str:
    shared = chain.pod("shared", limits={GPU_MILLI: "500", GPU_MEMORY: "4Gi"}).wait_running()
    took = (ask(shared, "take 100"), ask(shared, "take 4096"))
    if took != _KEPT_WITHIN:
        return f"a pod with 4 GiB takes 100 MiB and then 4 GiB: {took}"
    forger = Ed25519PrivateKey.generate()
    refusal = _forged(chain, shared, forger).wait_waiting("CreateContainerError")
    return "" if key_id(forger.public_key()) in refusal else f"a forged allocation: {refusal}"


def _forged(chain: Chain, shared: Pod, forger: Ed25519PrivateKey) -> Pod:
    """Bound by somebody without the scheduler's key."""
    pod = chain.pod("forged", limits={GPU_MILLI: "500"}, scheduler="nobody")
    allocation = replace(chain.allocation(shared), pod=PodUid(pod.uid))
    chain.rig.cluster.bind(pod, NODE, allocation, signed_by=forger)
    return pod


def _compared(containerd: str) -> CritestFound:
    say(f"\ncritest on {containerd}, straight and through crishim")
    began = time.monotonic()
    try:
        with (
            lone_runtime(critest.images(), say=say, releases=(containerd,)) as straight,
            lone_runtime(critest.images(), say=say, releases=(containerd,)) as through,
            in_front(through.machine, crishim("--guard", "on")),
            ThreadPoolExecutor(2) as pool,
        ):
            ways = ((straight, straight.socket), (through, SOCKET))
            one, other = (pool.submit(partial(_run, *way)) for way in ways)
            return _both(containerd, one.result(), other.result(), _since(began))
    except RigError as error:
        return CritestFound(containerd=containerd, seconds=_since(began), wrong=_short(error))


def _run(runtime: LoneRuntime, socket: str) -> Run:
    one = Critest(runtime.programs["critest"], socket, runtime.scratch, runtime.machine.way_in)
    return critest.run(one, seed=SEED, say=say)


def _both(containerd: str, straight: Run, through: Run, seconds: float) -> CritestFound:
    ended, other = _outcomes(straight), _outcomes(through)
    differ = sorted(spec for spec in ended.keys() | other.keys() if ended.get(spec) != other.get(spec))
    counts = Counter(ended.values())
    return CritestFound(
        containerd=containerd,
        seconds=seconds,
        passed=counts[Outcome.PASSED],
        failed=counts[Outcome.FAILED],
        skipped=counts[Outcome.SKIPPED],
        differ=[f"{spec}: {ended.get(spec)} straight, {other.get(spec)} through crishim" for spec in differ],
        wrong="" if counts[Outcome.PASSED] else "no spec passed",
    )


def _outcomes(run: Run) -> Mapping[str, Outcome]:
    return {spec: result.outcome for spec, result in run.results.items()}


def _told(pairs: Sequence[PairFound], compared: Sequence[CritestFound]) -> int:
    wrong = [
        *(each for each in pairs if each.wrong or each.claims_wrong),
        *(f"critest on {each.containerd}: {each.wrong}" for each in compared if each.wrong),
        *(f"critest on {each.containerd}: {spec}" for each in compared for spec in each.differ),
    ]
    say("", *map(str, (*compared, *pairs)))
    return ended("matrix", wrong, pairs=list(map(asdict, pairs)), critest=list(map(asdict, compared)))


def _short(error: RigError) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:_WORTH_TELLING]


def _since(began: float) -> float:
    return round(time.monotonic() - began, 1)


if __name__ == "__main__":
    raise SystemExit(main())
