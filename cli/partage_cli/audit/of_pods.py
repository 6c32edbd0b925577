"""Pods against their own allocations: signatures, keys, and requests. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from partage_cli.audit.observation import SeenCluster, SeenPod
from partage_cli.doctor.findings import About, Finding
from partage_plugins.api import GPU, ContainerName, GpuGrant, GpuRequest, Pod, PodRequest
from partage_plugins.api.keys import ALLOCATION
from partage_plugins.api.names import grantee_in_words
from partage_plugins.errors import PartageError
from partage_scheduler.objects import seen

Read = Callable[[Pod], PodRequest]
"""Reads a pod's request in any dialect; raises `PartageError`."""
_FORGED = "delete the pod, and find who writes alloc.partage.dev/ annotations"
_AGAIN = "delete the pod: it is placed again"
_ELSEWHERE = "name {} in schedulerName in what the pod is made from, and delete the pod"


def unread(cluster: SeenCluster) -> Iterator[Finding]:
    """Report the objects that can't be decoded."""
    about = About("unread")
    yield from (about.wrong(each, do="delete it, or write it again") for each in cluster.unread)


def signatures(cluster: SeenCluster) -> Iterator[Finding]:
    """Every allocation has a valid signature, for this pod on this node."""
    about = About("signatures")
    faults = [about.wrong(f"pod {each.name}: {each.fault}", do=_FORGED) for each in cluster.pods if each.fault]
    yield from faults
    good = sum(each.allocation is not None for each in cluster.pods)
    if good and not cluster.keys:
        words = f"{good} allocations; no public key in the cluster's ConfigMap or here to check them with"
        yield about.unknown(words, do="`partage keys ensure` makes a key, or run it where keys.d is")
    elif not faults:
        yield about.ok(f"{good} allocations, all signed by keys that are trusted")


def keys(cluster: SeenCluster) -> Iterator[Finding]:
    """Count the pods that need each key."""
    about = About("keys")
    used = Counter(each.key for each in cluster.pods if each.allocation is not None and each.key is not None)
    for key in sorted({*used, *cluster.keys}):
        yield about.ok(f"key {key} is needed by {used[key]} pods" if used[key] else f"key {key} is needed by no pod")


def requests(cluster: SeenCluster, read: Read, *, ours: Sequence[str]) -> Iterator[Finding]:
    """A bound pod has exactly the cards that it requests. `ours`: our schedulers; empty if any may use partage."""
    about = About("requests")
    pods = [each for each in cluster.pods if each.pod.node and not each.fault]
    wrong = [
        about.wrong(f"pod {each.name} on node {each.pod.node}: {words}", do=_placed_by(each, ours))
        for each in pods
        for words in _of_pod(each, read)
    ]
    yield from wrong or [about.ok(f"{len(pods)} pods on nodes have what they ask for")]


def _placed_by(each: SeenPod, ours: Sequence[str]) -> str:
    """The advice: a pod that another scheduler bound would be bound the same way again."""
    is_ours = not ours or each.allocation is not None or each.pod.spec.scheduler_name in ours
    return _AGAIN if is_ours else _ELSEWHERE.format(" or ".join(ours))


def _of_pod(each: SeenPod, read: Read) -> Iterator[str]:
    try:
        asked = dict(read(seen(each.pod)).of(GPU))
    except PartageError as error:
        yield f"what it asks for can't be read: {error}"
        return
    given = {} if each.allocation is None else dict(each.allocation.of(GPU))
    if asked and ALLOCATION not in each.pod.metadata.annotations:
        by = each.pod.spec.scheduler_name or "somebody else"
        yield f"asks for cards and has no allocation, so it may count on every card of the node; it was bound by {by}"
        return
    is_resized = each.allocation is not None and each.allocation.gen > 1
    for container in sorted({*asked, *given}):
        yield from _of_container(container, asked.get(container), given.get(container, ()), is_resized=is_resized)


def _of_container(
    name: ContainerName, asked: GpuRequest | None, given: Iterable[GpuGrant], *, is_resized: bool
) -> Iterator[str]:
    """Compare one container. After a resize, the signed amounts differ from the request by design."""
    grants, who = tuple(given), grantee_in_words(name)
    if asked is None:
        yield f"{who} has {len(grants)} cards and asks for none"
        return
    if len(grants) != asked.count:
        yield f"{who} asks for {asked.count} cards and has {len(grants)}"
    for grant in () if is_resized else grants:
        if grant.share_milli != asked.share_milli:
            yield f"{who} asks for {asked.share_milli} milli of a card and has {grant.share_milli}"
        if asked.memory_bytes is not None and grant.memory_bytes != asked.memory_bytes:
            yield f"{who} asks for {asked.memory_bytes} bytes of a card and has {grant.memory_bytes}"
