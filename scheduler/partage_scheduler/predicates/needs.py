"""A pod's requests for every resource, computed as kubelet and the API server compute them.

App containers and sidecars run at once; init containers run one after another, each beside the sidecars declared before
it; the overhead is added. A limit without a request counts as the request. Pod-level resources replace the sum over
containers. During a resize the larger of desired and allocated resources counts.

CPU is in milli, everything else in whole units, rounded up. An unreadable quantity counts as more than any node has, so
that a pod is never placed on a misread request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import ceil
from typing import Final

from partage_plugins.api import Resources
from partage_plugins.codecs import parse_quantity
from partage_plugins.errors import DecodeError
from partage_scheduler.objects import ApiNode, ApiPod
from partage_scheduler.objects.pods import role_of
from partage_scheduler.objects.specs import Amounts, Container, ContainerStatus

CPU: Final = "cpu"
MEMORY: Final = "memory"
MOST: Final = 1 << 53
"""More than any machine has; sums over all pods of a node stay within 63 bits."""
_HUGE: Final = "hugepages-"

Counted = dict[str, int]


def asked_by(pod: ApiPod) -> Mapping[str, int]:
    """Highest request for each resource at any time; the returned mapping must not be modified."""
    spec = pod.spec
    if len(spec.containers) == 1 and not (
        spec.init_containers or spec.overhead or spec.resources or pod.status.container_statuses
    ):
        return of_container(spec.containers[0].resources)
    statuses = _statuses(pod)
    is_infeasible = bool(statuses) and _is_infeasible(pod)
    running: Counted = {}
    for container in spec.containers:
        _add(running, _granted(container, statuses, is_infeasible=is_infeasible))
    _higher(running, _starting(pod, running, statuses, is_infeasible=is_infeasible))
    if spec.resources is not None:
        running.update(_of_pod(pod, spec.resources))
    _add(running, counted(spec.overhead))
    return running


def needs(pod: ApiPod) -> Resources:
    """CPU and main memory, as the decider counts them."""
    asked = asked_by(pod)
    return Resources(cpu_milli=asked.get(CPU, 0), memory_bytes=asked.get(MEMORY, 0))


def room_of(node: ApiNode) -> Resources:
    """Allocatable CPU and main memory; an unreadable quantity counts as 0."""
    found = node.status.allocatable
    return Resources(
        cpu_milli=amount(CPU, found.get(CPU, "0"), 0), memory_bytes=amount(MEMORY, found.get(MEMORY, "0"), 0)
    )


def of_container(amounts: Amounts) -> Counted:
    if not amounts.limits:
        return counted(amounts.requests)
    return counted({**amounts.limits, **amounts.requests})


def counted(amounts: Mapping[str, str], *, unreadable: int = MOST) -> Counted:
    return {name: amount(name, text, unreadable) for name, text in amounts.items()}


@lru_cache(maxsize=1 << 14)
def amount(name: str, text: str, unreadable: int = MOST) -> int:
    try:
        number = parse_quantity(text)
    except DecodeError:
        return unreadable
    return min(max(ceil(1000 * number if name == CPU else number), 0), MOST)


def _statuses(pod: ApiPod) -> dict[str, ContainerStatus]:
    status = pod.status
    return {each.name: each for each in (*status.init_container_statuses, *status.container_statuses)}


def _is_infeasible(pod: ApiPod) -> bool:
    """Whether kubelet reported the desired resources as infeasible: then only the allocated ones count."""
    pending = [each for each in pod.status.conditions if each.type == "PodResizePending"]
    return bool(pending) and pending[0].reason == "Infeasible"


def _granted(container: Container, statuses: Mapping[str, ContainerStatus], *, is_infeasible: bool) -> Counted:
    """Requests of an app container or sidecar: the highest of desired, allocated and actual."""
    wanted = of_container(container.resources)
    status = statuses.get(container.name)
    if status is None or not (status.resources or status.allocated_resources):
        return wanted
    given = counted(status.allocated_resources)
    if status.resources is not None:
        _higher(given, counted(status.resources.requests))
    if not is_infeasible:
        _higher(given, wanted)
    return given


def _starting(
    pod: ApiPod, running: Counted, statuses: Mapping[str, ContainerStatus], *, is_infeasible: bool
) -> Counted:
    """Highest requests of init containers, each with the sidecars before it; adds the sidecars to `running`."""
    beside: Counted = {}
    highest: Counted = {}
    for container in pod.spec.init_containers:
        if role_of(container) == "sidecar":
            asked = _granted(container, statuses, is_infeasible=is_infeasible)
            _add(running, asked)
            _add(beside, asked)
            _higher(highest, beside)
        else:
            asked = of_container(container.resources)
            _add(asked, beside)
            _higher(highest, asked)
    return highest


def _of_pod(pod: ApiPod, wanted: Amounts) -> Counted:
    """Pod-level requests, for the resources that support them."""
    asked = {name: most for name, most in of_container(wanted).items() if _may_be_of_pod(name)}
    status = pod.status
    overhead = counted(pod.spec.overhead)
    for given in (status.allocated_resources, status.resources.requests if status.resources else {}):
        for name, most in counted(given).items():
            if name in asked:
                asked[name] = max(asked[name], most - overhead.get(name, 0))
    return asked


def _may_be_of_pod(name: str) -> bool:
    return name in {CPU, MEMORY} or name.startswith(_HUGE)


def _add(total: Counted, more: Mapping[str, int]) -> None:
    for name, number in more.items():
        total[name] = total.get(name, 0) + number


def _higher(highest: Counted, other: Mapping[str, int]) -> None:
    for name, number in other.items():
        if number > highest.get(name, 0):
            highest[name] = number


def leaving_out(asked: Mapping[str, int], names: Iterable[str]) -> Counted:
    """Drops CPU, main memory, zero amounts and `names`; a name that ends in a slash is a prefix."""
    exact = {CPU, MEMORY, *names}
    starts = tuple(name for name in exact if name.endswith("/"))
    return {
        name: number for name, number in asked.items() if number and name not in exact and not name.startswith(starts)
    }
