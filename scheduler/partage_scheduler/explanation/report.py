"""The state of one pod, in any phase: on a node with its cards, held back, or waiting, and why. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from partage_plugins.api import GPU, Allocation, CardId, NodeName, PodUid
from partage_plugins.api.keys import GPU_MILLI, RESIZED
from partage_plugins.errors import DecodeError, Refused
from partage_scheduler.cycle import lacks
from partage_scheduler.explanation.nodes import Explained, explain
from partage_scheduler.objects import ApiPod, gang_of
from partage_scheduler.preemption import VictimFinder, Victims
from partage_scheduler.resize.room import suspended_words

State = Literal["on a node", "ended", "being deleted", "gated", "gathering", "not ours", "refused", "waits", "fits"]
_UNREAD: Final = "asks for no card in words that partage reads"


class GivenCard(Struct, frozen=True, kw_only=True):
    container: str
    """Or a claim of the pod, which several containers may use."""
    card: CardId
    share_milli: int
    limit_milli: int
    memory_bytes: int
    movable: bool = False
    """Whether its memory leaves the card while others have their turn."""


class Displaced(Struct, frozen=True, kw_only=True):
    node: NodeName
    pods: tuple[str, ...]
    """As namespace/name; deleted or suspended."""
    suspended: tuple[str, ...] = ()
    """Those of them that are suspended."""
    violations: int
    """PodDisruptionBudgets violated."""


class PodReport(Struct, frozen=True, kw_only=True):
    pod: str
    """As namespace/name."""
    uid: str
    scheduler: str
    priority: int
    state: State
    message: str
    """One sentence."""
    node: str = ""
    """The node it is on, or is nominated to."""
    given: tuple[GivenCard, ...] = ()
    explained: Explained | None = None
    displaces: Displaced | None = None
    """Pods that preemption would evict or suspend, if nothing else makes it fit."""


def stand(  # noqa: PLR0913 - said once, and by name
    finder: VictimFinder,
    pod: ApiPod,
    now: float,
    *,
    lacking: Callable[[ApiPod], int],
    flagged: Mapping[PodUid, str],
    ours: str | None = None,
) -> PodReport:
    """Raises what plugins raise. `lacking`: how many pods its gang still lacks.

    `ours`: the one scheduler that this state belongs to; None: any that the pod names.
    """
    if pod.node or pod.is_terminal or pod.is_going:
        return _placed(finder, pod, flagged, now)
    if ours is not None and pod.spec.scheduler_name != ours:
        return _not_ours(finder, pod, now, ours)
    if pod.spec.scheduling_gates:
        names = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        return _stands(pod, "gated", f"it is not to be placed while it has scheduling gates: {names}")
    gang = gang_of(pod)
    if gang is not None and (number := lacking(pod)) > 0:
        return _stands(pod, "gathering", lacks(gang.name, number, gang.size))
    try:
        return _waiting(finder, pod, now, may_displace=gang is None)
    except (DecodeError, Refused) as error:
        return _stands(pod, "refused" if isinstance(error, DecodeError) else "waits", _why(error))


def _placed(finder: VictimFinder, pod: ApiPod, flagged: Mapping[PodUid, str], now: float) -> PodReport:
    if pod.is_terminal:
        return _stands(pod, "ended", f"it has ended: {pod.status.phase}")
    if not pod.node:
        return _stands(pod, "being deleted", "it is being deleted and was never placed")
    placed = finder.cluster.placed_pods.get(pod.uid)
    given = () if placed is None else tuple(_given(placed.allocation))
    for local, held in finder.cluster.claims.held(pod):
        given += tuple(replace(each, container=f"claim {local}") for each in _given(held))
    words = flagged.get(pod.uid) or f"it is on node {pod.node}" + ("" if given else ", without cards")
    if placed is not None and (suspended := suspended_words(finder.cycle, placed, now)):
        words += f"; it is {suspended}"
    words += "".join(f"; {each.reason}: {each.message}" for each in pod.status.conditions if each.type == RESIZED)
    return _stands(pod, "on a node", words, node=pod.node, given=given)


def _waiting(finder: VictimFinder, pod: ApiPod, now: float, *, may_displace: bool) -> PodReport:
    explained = explain(finder.cycle, pod, now)
    if explained.goes_to is not None:
        words = f"it fits, and would go to {explained.goes_to} now"
        words += "" if explained.asks else f", without cards: it {_UNREAD}"
        return _stands(pod, "fits", words, explained=explained)
    found = finder.victims(pod, now) if may_displace else None
    displaced = _displaced(found) if isinstance(found, Victims) else None
    return _stands(
        pod,
        "waits",
        explained.message,
        explained=explained,
        displaces=displaced,
        node=pod.status.nominated_node_name,
    )


def _not_ours(finder: VictimFinder, pod: ApiPod, now: float, ours: str) -> PodReport:
    waits = f"it waits for {pod.spec.scheduler_name}, which is not ours"
    name_ours = f"set schedulerName: {ours} in what it is made from"
    try:
        explained = explain(finder.cycle, pod, now)
    except (DecodeError, Refused) as error:
        return _stands(pod, "not ours", f"{waits}; ours, {ours}, would not place it: {_why(error)}")
    if not explained.asks:
        return _stands(pod, "not ours", f"{waits}, and {_UNREAD}; for a card ask for {GPU_MILLI}, and {name_ours}")
    then = f"it would go to {explained.goes_to} now" if explained.goes_to else f"it would wait: {explained.message}"
    return _stands(pod, "not ours", f"{waits}; {name_ours}: {then}", explained=explained)


def _why(error: DecodeError | Refused) -> str:
    return f"it is written wrongly: {error}" if isinstance(error, DecodeError) else str(error)


def _displaced(victims: Victims) -> Displaced:
    names = {each.uid: f"{each.namespace}/{each.name}" for each in victims.pods}
    suspended = tuple(name for uid, name in names.items() if uid in victims.suspended)
    return Displaced(node=victims.node, pods=tuple(names.values()), suspended=suspended, violations=victims.violations)


def _given(allocation: Allocation) -> Iterator[GivenCard]:
    for name, grants in allocation.of(GPU).items():
        for grant in grants:
            yield GivenCard(
                container=name,
                card=grant.card,
                share_milli=grant.share_milli,
                limit_milli=grant.limit_milli,
                memory_bytes=grant.memory_bytes,
                movable=grant.movable,
            )


def _stands(  # noqa: PLR0913 - what is not said is empty
    pod: ApiPod,
    state: State,
    message: str,
    *,
    node: str = "",
    given: tuple[GivenCard, ...] = (),
    explained: Explained | None = None,
    displaces: Displaced | None = None,
) -> PodReport:
    return PodReport(
        pod=f"{pod.namespace}/{pod.name}",
        uid=pod.uid,
        scheduler=pod.spec.scheduler_name,
        priority=pod.priority,
        state=state,
        message=message,
        node=node,
        given=given,
        explained=explained,
        displaces=displaces,
    )
