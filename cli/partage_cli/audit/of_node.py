"""One node against the API server: its local inventory, the runtime's containers, the broker's limits. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from partage_base.cri import ListedContainer
from partage_cli.audit.observation import SeenCluster, SeenHere, SeenPod
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.local_node import Unseen
from partage_isolation.wire.messages import ContainerReport
from partage_plugins.api import GPU, AnyKind, ContainerAllocation, ContainerKey, ContainerName, GpuGrant, PodUid
from partage_plugins.api.keys import CONTAINER
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.codecs import decode_container, decode_inventory
from partage_plugins.errors import DecodeError

_END: Final = "delete the pod; if it stays, end the container"
_AS_ROOT: Final = "ask again as root, on the node"


class _Running(NamedTuple):
    """A container that has not exited, with crishim's allocation annotation."""

    container: ListedContainer
    allocation: ContainerAllocation

    @property
    def words(self) -> str:
        return f"container {self.container.name} ({self.container.id[:12]})"


def inventory(here: SeenHere, cluster: SeenCluster, kinds: Iterable[AnyKind]) -> Iterator[Finding]:
    """The node's annotation has the same inventory as the local file that crishim reads."""
    about, node = About("inventory"), cluster.nodes.get(here.name)
    if node is None:
        yield about.wrong(f"the API server knows no node {here.name}", do="say its name by --node-name")
    elif isinstance(here.inventory, Unseen):
        yield about.unknown(str(here.inventory), do=_AS_ROOT)
    else:
        try:
            local = decode_inventory(here.inventory, kinds)
        except DecodeError as error:
            yield about.wrong(f"this node's own: {error}", do="restart the advertiser")
            return
        if node.inventory is None or local.kinds != node.inventory.kinds:
            words = f"what stands on node {here.name} is not what crishim is told"
            yield about.wrong(words, do="look at the advertiser's log: can it write to the API server?")
        else:
            yield about.ok(f"node {here.name} says to the API server what it says to crishim")


def runtime(here: SeenHere, cluster: SeenCluster, kinds: Iterable[AnyKind]) -> Iterator[Finding]:
    """Containers run with exactly the cards that were allocated to their pods."""
    about = About("runtime")
    if isinstance(here.containers, Unseen):
        yield about.unknown(str(here.containers), do=_AS_ROOT)
        return
    pods = {each.pod.uid: each for each in cluster.pods if each.pod.node == here.name}
    known, running = tuple(kinds), [each for each in here.containers if each.running]
    wrong = [
        about.wrong(f"container {each.name} ({each.id[:12]}): {words}", do=_END)
        for each in running
        for words in _of_container(each, pods.get(PodUid(each.pod_uid)), known)
    ]
    with_cards = sum(CONTAINER in each.annotations for each in running)
    yield from wrong or [
        about.ok(f"{len(running)} containers run, {with_cards} with cards, all as they were allocated")
    ]


def broker(here: SeenHere, cluster: SeenCluster, kinds: Iterable[AnyKind]) -> Iterator[Finding]:
    """The broker has limits for the runtime's containers, and for no others."""
    about = About("broker")
    if isinstance(here.broker, Unseen):
        yield about.unknown(str(here.broker), do=_AS_ROOT)
    elif isinstance(here.containers, Unseen):
        yield about.unknown("not compared: the runtime could not be asked", do=_AS_ROOT)
    else:
        told = {each.key: each for each in here.broker.containers if not each.is_claim}
        pods = {each.pod.uid: each for each in cluster.pods}
        found = list(_of_broker(about, told, _with_grants(here.containers, tuple(kinds)), pods))
        yield from found or [about.ok(f"limits of {len(told)} containers, as crishim gave them")]


def _of_broker(
    about: About,
    told: Mapping[ContainerKey, ContainerReport],
    known: Mapping[ContainerKey, _Running],
    pods: Mapping[PodUid, SeenPod],
) -> Iterator[Finding]:
    for key, each in known.items():
        if key not in told and each.container.running and any(map(_is_part, each.allocation.of(GPU))):
            yield about.wrong(f"{each.words} has part of a card, and no limits", do=_END)
    for key, limits in told.items():
        if key not in known:
            who = f"{limits.pod.namespace}/{limits.pod.name} {limits.container}"
            yield about.warning(f"it has limits for {who}, which the runtime does not have", do="ask again in a minute")
        else:
            yield from _of_limits(about, limits, known[key], pods.get(limits.pod.uid))


def _of_limits(about: About, limits: ContainerReport, each: _Running, pod: SeenPod | None) -> Iterator[Finding]:
    """Compare a container's limits. If it was resized while running, the pod has the current grants."""
    grants, gen = each.allocation.of(GPU), each.allocation.gen
    if pod is not None and pod.allocation is not None and limits.gen == pod.allocation.gen > gen:
        grants = _allocated(pod, each.container.name)
    granted = {grant.card: grant.memory_bytes for grant in grants}
    for card in limits.cards:
        if granted.get(card.card) != card.granted_bytes:
            words = f"{card.granted_bytes} bytes of card {card.card} for the broker"
            crishim = f"{granted.get(card.card, 0)} for crishim"
            yield about.wrong(f"{each.words}: {words}, {crishim}", do=_END)


def _with_grants(containers: Iterable[ListedContainer], kinds: tuple[AnyKind, ...]) -> dict[ContainerKey, _Running]:
    found: dict[ContainerKey, _Running] = {}
    for each in containers:
        text = each.annotations.get(CONTAINER)
        if text is None or each.exited:
            continue
        try:
            allocation = decode_container(text, kinds)
        except DecodeError:
            continue  # reported by `runtime`
        found[allocation.key] = _Running(each, allocation)
    return found


def _of_container(container: ListedContainer, pod: SeenPod | None, kinds: tuple[AnyKind, ...]) -> Iterator[str]:
    text, wanted = container.annotations.get(CONTAINER), _allocated(pod, container.name)
    if text is None:
        if wanted:
            yield f"was allocated {len(wanted)} cards, and runs without crishim's word for them"
        return
    try:
        allocation = decode_container(text, kinds)
    except DecodeError as error:
        yield f"what crishim wrote on it can't be read: {error}"
        return
    if pod is None:
        yield "runs with cards, and the API server has no such pod on this node"
    elif pod.allocation is None:
        yield f"runs with cards, and pod {pod.name} has no allocation that is to be believed"
    elif pod.allocation.gen <= allocation.gen and _held(allocation.of(GPU)) != _held(wanted):
        yield f"runs with other cards, or other parts of them, than pod {pod.name} was allocated"


def _allocated(pod: SeenPod | None, container: str) -> tuple[GpuGrant, ...]:
    if pod is None or pod.allocation is None:
        return ()
    return pod.allocation.given(ContainerName(container), GPU)


def _held(grants: Iterable[GpuGrant]) -> list[tuple[str, int, int, int]]:
    return sorted((each.card, each.share_milli, each.limit_milli, each.memory_bytes) for each in grants)


def _is_part(grant: GpuGrant) -> bool:
    """Less than the whole card, so that limits are needed."""
    return grant.share_milli < WHOLE_MILLI
