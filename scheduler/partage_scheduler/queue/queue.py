"""The scheduling queue: which pod is next.

A pod that failed waits for a cluster event that may make it fit, not for a timer; then it backs off for a time that
grows with its failures, and is ordered by priority, by turns of the namespaces, and by age. While no other pod is
ready, a pod whose event has occurred skips the rest of its back-off, once per back-off: an idle scheduler keeps no pod
waiting, and a storm of events still costs no more than two tries per back-off. Events that occur while a pod is in
flight count when it is returned.

A gang is scheduled as one as soon as enough of its pods exist, running ones included, and holds nothing before: two
gangs can't each hold what the other needs. Pure: callers pass the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from itertools import islice
from typing import Final

from msgspec import Struct

from partage_plugins.api import Gang, PodUid
from partage_scheduler.cluster.cluster_events import NOTHING, ClusterEvent
from partage_scheduler.objects import ApiPod, gang_of
from partage_scheduler.queue.fair_queue import FairQueue, Heap, Spent
from partage_scheduler.queue.groups import Key, Place, QueuedGroup, Waiting, says_other

GATED: Final = "gated"
_DOUBLINGS: Final = 30
_LEAST_S: Final = 0.0005
"""Time charged for each pod that is handed out, in addition to what its decision takes."""


class QueueSettings(Struct, frozen=True, kw_only=True):
    first_s: float = 1.0
    """Back-off after the first failure; doubled with each further one."""
    most_s: float = 10.0
    gang_timeout_s: float = 300.0
    """Time after which an incomplete gang is reported as such, and again after as long."""


def _nobody(_gang: Gang) -> int:
    return 0


class Queue:
    def __init__(self, settings: QueueSettings | None = None, *, placed_on: Callable[[Gang], int] = _nobody) -> None:
        """`placed_on` returns the number of a gang's pods that are on nodes or assumed to be."""
        self._settings = settings or QueueSettings()
        self._seated = placed_on
        self._gated: dict[PodUid, ApiPod] = {}
        self._groups: dict[Key, QueuedGroup] = {}
        self._unit_of: dict[PodUid, QueuedGroup] = {}
        self._spent = Spent()
        self._ready, self._jumping, self._timed = FairQueue(self._spent), FairQueue(self._spent), Heap()
        self._concerned: dict[frozenset[ClusterEvent], dict[Key, QueuedGroup]] = {}
        """Waiting units by the cluster events that may help them."""
        self._gathering: dict[Key, QueuedGroup] = {}
        self._happened: dict[ClusterEvent, int] = {}
        self._moment = self._number = 0
        self._now = 0.0

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._unit_of or uid in self._gated

    @property
    def due(self) -> float | None:
        """When `next` may return something without a new event; valid after it returned None."""
        found = self._timed.first()
        return None if found is None else found[0]

    def sizes(self) -> Mapping[str, int]:
        """Number of pods in each state."""
        found = Counter({place.value: 0 for place in Place} | {GATED: len(self._gated)})
        for group in self._groups.values():
            found[Place.FLYING.value] += len(group.flying)
            there = Place.GATHERING if group.place is Place.FLYING else group.place
            found[there.value] += len(group.members) - len(group.flying)
        return found

    def lacking(self, uid: PodUid) -> int:
        """Number of pods that must still be added to its gang before this pod is decided on."""
        group = self._unit_of.get(uid)
        return 0 if group is None else max(0, self._lacking(group))

    def offer(self, pod: ApiPod, now: float) -> None:
        """Adds or updates a pod that is to be placed; withdraws one that is not."""
        self._now = now
        if pod.node or pod.is_terminal or pod.is_going:
            self.withdraw(pod.uid)
        elif pod.spec.scheduling_gates:
            self.withdraw(pod.uid)
            self._gated[pod.uid] = pod
        else:
            self._gated.pop(pod.uid, None)
            self._join(pod, gang_of(pod) or pod.uid)  # a malformed gang is reported when it is decided on

    def withdraw(self, uid: PodUid) -> None:
        """Removes a pod that is not to be placed any more: bound, gone, or not ours."""
        self._gated.pop(uid, None)
        group = self._unit_of.pop(uid, None)
        if group is None:
            return
        del group.members[uid]
        group.flying.discard(uid)
        if not group.members:
            self._move(group, Place.READY)  # out of every other state, and out of the line
            del self._groups[group.key]
        elif group.place is Place.FLYING and not group.flying:
            self._land(group)

    def next(self, now: float, but: Container[str] = ()) -> Waiting | None:
        """The pod or gang to decide on now, of no namespace in `but`.

        It is in flight until `failed` or `withdraw` is called for each of its pods.
        """
        self._now = now
        self._wake()
        while (group := self._ready.pop(but) or self._jumped(but)) is not None:
            if self._lacking(group) <= 0 or group.late:
                return self._launch(group)
            self._gather(group)
        return None

    def took(self, waiting: Waiting, seconds: float) -> None:
        """Charges the time of a decision to its namespace, which then waits longer for its next turn."""
        self._spent.add(waiting.pods[0].namespace, seconds)

    def failed(self, uid: PodUid, cluster_events: frozenset[ClusterEvent], now: float) -> None:
        """Returns a pod that was not placed; it is retried after one of these events. TIME: after its back-off."""
        self._now = now
        group = self._unit_of.get(uid)
        if group is None or uid not in group.flying:
            return
        group.flying.discard(uid)
        group.members[uid] = group.members.pop(uid)  # so that others of a large gang get their turn
        group.failed = True
        group.cluster_events |= cluster_events
        if not group.flying:
            self._land(group)

    def happened(self, cluster_events: Iterable[ClusterEvent], now: float) -> None:
        self._now = now
        news = frozenset(cluster_events)
        if not news:
            return
        self._moment += 1
        self._happened.update(dict.fromkeys(news, self._moment))
        for concerned in [each for each in self._concerned if not news.isdisjoint(each)]:
            for group in list(self._concerned[concerned].values()):
                self._stir(group)
        if ClusterEvent.POD in news:  # it may complete a gang, bound by another scheduler
            for group in list(self._gathering.values()):
                self._review(group)

    def _join(self, pod: ApiPod, key: Key) -> None:
        group = self._unit_of.get(pod.uid)
        if group is not None and group.key == key:
            before, group.members[pod.uid] = group.members[pod.uid], pod
            if says_other(pod, before):
                self._stir(group)
            return
        self.withdraw(pod.uid)
        group = self._groups.get(key)
        if group is None:
            self._number += 1
            group = self._groups[key] = QueuedGroup(key, self._number, pod.namespace)
            self._gather(group)
        group.members[pod.uid], self._unit_of[pod.uid] = pod, group
        self._review(group)
        self._stir(group)

    def _lacking(self, group: QueuedGroup) -> int:
        """Number of pods that a gang still lacks."""
        gang = group.gang
        return 1 - len(group.members) if gang is None else gang.size - self._seated(gang) - len(group.members)

    def _review(self, group: QueuedGroup) -> None:
        if group.place is Place.GATHERING and self._lacking(group) <= 0:
            self._enter(group)

    def _move(self, group: QueuedGroup, place: Place) -> None:
        """Moves a unit; no other code changes its `place`."""
        concerned = self._concerned.get(group.cluster_events)
        if concerned is not None:
            concerned.pop(group.key, None)
            if not concerned:
                del self._concerned[group.cluster_events]
        if place is Place.GATHERING:
            self._gathering[group.key] = group
        else:
            self._gathering.pop(group.key, None)
        group.place = place
        group.turn += 1

    def _gather(self, group: QueuedGroup) -> None:
        self._move(group, Place.GATHERING)
        group.late, group.cluster_events = False, NOTHING
        group.until = self._now + self._settings.gang_timeout_s
        if group.gang:
            self._timed.push(group, group.until)

    def _enter(self, group: QueuedGroup) -> None:
        self._move(group, Place.READY)
        group.jumped = False
        self._ready.push(group)

    def _wake(self) -> None:
        """Readies units whose back-off is over, and incomplete gangs whose timeout is, so that they are reported."""
        while (found := self._timed.first()) is not None and found[0] <= self._now:
            group = found[1]
            group.late = group.place is Place.GATHERING
            self._enter(group)

    def _jumped(self, but: Container[str]) -> QueuedGroup | None:
        group = self._jumping.pop(but)
        if group is not None:
            group.jumped = True
        return group

    def _launch(self, group: QueuedGroup) -> Waiting:
        lacking = max(0, self._lacking(group))
        group.late = lacking > 0
        count = len(group.members)
        if group.gang and not lacking:
            count = max(1, group.gang.size - self._seated(group.gang))
        self._move(group, Place.FLYING)
        group.cluster_events, group.launched = NOTHING, self._moment
        group.failed = group.changed = group.stirred = False
        pods = tuple(islice(group.members.values(), count))
        self._spent.add(group.namespace, _LEAST_S * len(pods))
        group.flying = {pod.uid for pod in pods}
        return Waiting(pods, group.gang, lacking, group.attempts)

    def _land(self, group: QueuedGroup) -> None:
        """Requeues a unit when all its pods in flight were returned or placed."""
        if group.late or not group.failed:
            group.attempts = group.attempts if group.late else 0
            self._gather(group)
            self._review(group)
            return
        rest_s = self._settings.first_s * 2.0 ** min(group.attempts, _DOUBLINGS)
        group.until = self._now + min(rest_s, self._settings.most_s)
        group.attempts += 1
        news = any(self._happened.get(cause, 0) > group.launched for cause in group.cluster_events)
        group.stirred = news or group.changed
        self._wait(group)

    def _wait(self, group: QueuedGroup) -> None:
        rests = group.stirred or ClusterEvent.TIME in group.cluster_events
        self._move(group, Place.RESTING if rests else Place.WAITING)
        if not group.stirred:
            self._concerned.setdefault(group.cluster_events, {})[group.key] = group
        elif not group.jumped:
            self._jumping.push(group)
        if rests:
            self._timed.push(group, group.until)

    def _stir(self, group: QueuedGroup) -> None:
        if group.place is Place.FLYING:
            group.changed = True
        elif group.place in (Place.WAITING, Place.RESTING) and not group.stirred:
            group.stirred = True
            if group.until <= self._now:
                self._enter(group)
            else:
                self._wait(group)
