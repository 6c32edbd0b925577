"""Any pod either requests cards that add up to its amounts or raises DecodeError, and equal pods have equal requests.

The input is lines: `c NAME` begins a container, `l KEY VALUE` and `r KEY VALUE` are its limits and requests, and `a KEY
VALUE` is an annotation of the pod. Backslash-n stands for a line break.
"""

from __future__ import annotations

from collections.abc import Mapping

from fuzz import _codecs
from partage_plugins.api import (
    Budgeted,
    ContainerName,
    GpuRequest,
    Namespace,
    Pod,
    PodContainer,
    PodName,
    PodRef,
    PodUid,
    keys,
)
from partage_plugins.codecs import parse_quantity, read_requests
from partage_plugins.codecs.native import read_asks
from partage_plugins.errors import DecodeError

SEEDS = (
    b"c main\nl partage.dev/gpu-milli 500\nl partage.dev/gpu-memory 8Gi\na partage.dev/limit-milli 1000",
    b"c main\nl partage.dev/gpu-milli 1500\nl partage.dev/gpus 2\nr partage.dev/gpu-milli 1.5k\nr partage.dev/gpus 2",
    b"c a\nl partage.dev/gpu-milli 3k\nc b\nl partage.dev/gpu-memory 1Gi\na partage.dev/limit-milli a: 3000; b: 200;",
    b"c main\nl partage.dev/gpu-milli 1\na partage.dev/cards GPU-1,MIG-2/1/0\na partage.dev/models NVIDIA L4, T4",
    b"c a\nl partage.dev/gpu-milli 600\nc b\nc d\nl partage.dev/gpu-milli 1\na partage.dev/budget a: x; b: x; d: y",
)
DICTIONARY = (*(key.encode() for key in (*keys.GPU_RESOURCES, *keys.POLICIES)), b"\nc ", b"\nl ", b"\na ", b"; ", b": ")


def target(data: bytes) -> str:
    """Reads the requests twice and checks them against the amounts."""
    pod = _pod(data)
    try:
        requests, asks = read_requests(pod), read_asks(pod)
    except DecodeError as error:
        return _codecs.refused(error)
    _check_budgets(requests, asks)
    for container in pod.containers:
        _check(container, requests.get(container.name))
    if requests != read_requests(pod) or len({hash(request) for request in requests.values()}) > len(requests):
        raise AssertionError("equal pods asked for something else")
    return f"{min(len(requests), 3)} containers ask"


def _check_budgets(requests: Mapping[ContainerName, GpuRequest], asks: Mapping[ContainerName, object]) -> None:
    """A container requests its own amounts, in a budget or not; without any, those of another in its budget."""
    for name, ask in asks.items():
        wanted = ask.ask if isinstance(ask, Budgeted) else ask
        if wanted not in ([requests[name]] if name in requests else list(requests.values())):
            raise AssertionError(f"{name} wrote {requests.get(name)} and asks for {ask}")
    if not set(requests) <= set(asks):
        raise AssertionError(f"{set(requests) - set(asks)} ask no more once budgets are read")


def _check(container: PodContainer, request: GpuRequest | None) -> None:
    milli, memory, gpus = (
        parse_quantity(container.limits.get(key, "0")) for key in (keys.GPU_MILLI, keys.GPU_MEMORY, keys.GPUS)
    )
    if request is None:
        wrong = any((milli, memory, gpus))
    else:
        count = request.count
        wrong = (
            count * request.share_milli != milli
            or count * (request.memory_bytes or 0) != memory
            or gpus not in (0, count)
            or not request.share_milli <= request.limit_milli <= 1000
            or request.limit_milli < 1
        )
    if wrong:
        raise AssertionError(f"{container} was read as {request}")


def _pod(data: bytes) -> Pod:
    annotations: dict[str, str] = {}
    containers: dict[str, tuple[dict[str, str], dict[str, str]]] = {"": ({}, {})}
    name = ""
    for line in data.decode(errors="surrogateescape").split("\n"):
        what, _, rest = line.partition(" ")
        key, _, value = rest.partition(" ")
        value = value.replace("\\n", "\n")
        if what == "c":
            name = rest
            containers.setdefault(name, ({}, {}))
        elif what == "a":
            annotations[key] = value
        elif what in ("l", "r"):
            containers[name][what == "r"][key] = value
    ref = PodRef(namespace=Namespace("n"), name=PodName("p"), uid=PodUid("u"))
    found = (PodContainer(name=ContainerName(n), limits=li, requests=re) for n, (li, re) in containers.items())
    return Pod(ref=ref, annotations=annotations, containers=tuple(found))
