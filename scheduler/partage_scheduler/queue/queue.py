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
from partage_scheduler.cluster.causes import NOTHING, Cause
from partage_scheduler.objects import ApiPod
from partage_scheduler.queue.lines import Line, Spent, Turns
from partage_scheduler.queue.units import Key, Place, Unit, Waiting, key_of, says_other

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
    def __init__(self, settings: QueueSettings | None = None, *, seated: Callable[[Gang], int] = _nobody) -> None:
        """`seated` returns the number of a gang's pods that are on nodes or assumed to be."""
        self._settings = settings or QueueSettings()
        self._seated = seated
        self._gated: dict[PodUid, ApiPod] = {}
        self._units: dict[Key, Unit] = {}
        self._unit_of: dict[PodUid, Unit] = {}
        self._spent = Spent()
        self._ready, self._jumping, self._timed = Turns(self._spent), Turns(self._spent), Line()
        self._concerned: dict[frozenset[Cause], dict[Key, Unit]] = {}
        """Waiting units by the cluster events that may help them."""
        self._gathering: dict[Key, Unit] = {}
        self._happened: dict[Cause, int] = {}
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
        for unit in self._units.values():
            found[Place.FLYING.value] += len(unit.flying)
            there = Place.GATHERING if unit.place is Place.FLYING else unit.place
            found[there.value] += len(unit.members) - len(unit.flying)
        return found

    def lacking(self, uid: PodUid) -> int:
        """Number of pods that must still be added to its gang before this pod is decided on."""
        unit = self._unit_of.get(uid)
        return 0 if unit is None else max(0, self._lacking(unit))

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
            self._join(pod, key_of(pod))

    def withdraw(self, uid: PodUid) -> None:
        """Removes a pod that is not to be placed any more: bound, gone, or not ours."""
        self._gated.pop(uid, None)
        unit = self._unit_of.pop(uid, None)
        if unit is None:
            return
        del unit.members[uid]
        unit.flying.discard(uid)
        if not unit.members:
            self._move(unit, Place.READY)  # out of every other state, and out of the line
            del self._units[unit.key]
        elif unit.place is Place.FLYING and not unit.flying:
            self._land(unit)

    def next(self, now: float, but: Container[str] = ()) -> Waiting | None:
        """The pod or gang to decide on now, of no namespace in `but`.

        It is in flight until `failed` or `withdraw` is called for each of its pods.
        """
        self._now = now
        self._wake()
        while (unit := self._ready.pop(but) or self._jumped(but)) is not None:
            if self._lacking(unit) <= 0 or unit.late:
                return self._launch(unit)
            self._gather(unit)
        return None

    def took(self, waiting: Waiting, seconds: float) -> None:
        """Charges the time of a decision to its namespace, which then waits longer for its next turn."""
        self._spent.add(waiting.pods[0].namespace, seconds)

    def failed(self, uid: PodUid, causes: frozenset[Cause], now: float) -> None:
        """Returns a pod that was not placed; it is retried after one of these events. TIME: after its back-off."""
        self._now = now
        unit = self._unit_of.get(uid)
        if unit is None or uid not in unit.flying:
            return
        unit.flying.discard(uid)
        unit.members[uid] = unit.members.pop(uid)  # so that others of a large gang get their turn
        unit.failed = True
        unit.causes |= causes
        if not unit.flying:
            self._land(unit)

    def happened(self, causes: Iterable[Cause], now: float) -> None:
        self._now = now
        news = frozenset(causes)
        if not news:
            return
        self._moment += 1
        self._happened.update(dict.fromkeys(news, self._moment))
        for concerned in [each for each in self._concerned if not news.isdisjoint(each)]:
            for unit in list(self._concerned[concerned].values()):
                self._stir(unit)
        if Cause.POD in news:  # it may complete a gang, bound by another scheduler
            for unit in list(self._gathering.values()):
                self._review(unit)

    def _join(self, pod: ApiPod, key: Key) -> None:
        unit = self._unit_of.get(pod.uid)
        if unit is not None and unit.key == key:
            before, unit.members[pod.uid] = unit.members[pod.uid], pod
            if says_other(pod, before):
                self._stir(unit)
            return
        self.withdraw(pod.uid)
        unit = self._units.get(key)
        if unit is None:
            self._number += 1
            unit = self._units[key] = Unit(key, self._number, pod.namespace)
            self._gather(unit)
        unit.members[pod.uid], self._unit_of[pod.uid] = pod, unit
        self._review(unit)
        self._stir(unit)

    def _lacking(self, unit: Unit) -> int:
        """Number of pods that a gang still lacks."""
        gang = unit.gang
        return 1 - len(unit.members) if gang is None else gang.size - self._seated(gang) - len(unit.members)

    def _review(self, unit: Unit) -> None:
        if unit.place is Place.GATHERING and self._lacking(unit) <= 0:
            self._enter(unit)

    def _move(self, unit: Unit, place: Place) -> None:
        """Moves a unit; no other code changes its `place`."""
        concerned = self._concerned.get(unit.causes)
        if concerned is not None:
            concerned.pop(unit.key, None)
            if not concerned:
                del self._concerned[unit.causes]
        if place is Place.GATHERING:
            self._gathering[unit.key] = unit
        else:
            self._gathering.pop(unit.key, None)
        unit.place = place
        unit.turn += 1

    def _gather(self, unit: Unit) -> None:
        self._move(unit, Place.GATHERING)
        unit.late, unit.causes = False, NOTHING
        unit.until = self._now + self._settings.gang_timeout_s
        if unit.gang:
            self._timed.push(unit, unit.until)

    def _enter(self, unit: Unit) -> None:
        self._move(unit, Place.READY)
        unit.jumped = False
        self._ready.push(unit)

    def _wake(self) -> None:
        """Readies units whose back-off is over, and incomplete gangs whose timeout is, so that they are reported."""
        while (found := self._timed.first()) is not None and found[0] <= self._now:
            unit = found[1]
            unit.late = unit.place is Place.GATHERING
            self._enter(unit)

    def _jumped(self, but: Container[str]) -> Unit | None:
        unit = self._jumping.pop(but)
        if unit is not None:
            unit.jumped = True
        return unit

    def _launch(self, unit: Unit) -> Waiting:
        lacking = max(0, self._lacking(unit))
        unit.late = lacking > 0
        count = len(unit.members)
        if unit.gang and not lacking:
            count = max(1, unit.gang.size - self._seated(unit.gang))
        self._move(unit, Place.FLYING)
        unit.causes, unit.launched = NOTHING, self._moment
        unit.failed = unit.changed = unit.stirred = False
        pods = tuple(islice(unit.members.values(), count))
        self._spent.add(unit.namespace, _LEAST_S * len(pods))
        unit.flying = {pod.uid for pod in pods}
        return Waiting(pods, unit.gang, lacking, unit.attempts)

    def _land(self, unit: Unit) -> None:
        """Requeues a unit when all its pods in flight were returned or placed."""
        if unit.late or not unit.failed:
            unit.attempts = unit.attempts if unit.late else 0
            self._gather(unit)
            self._review(unit)
            return
        rest_s = self._settings.first_s * 2.0 ** min(unit.attempts, _DOUBLINGS)
        unit.until = self._now + min(rest_s, self._settings.most_s)
        unit.attempts += 1
        news = any(self._happened.get(cause, 0) > unit.launched for cause in unit.causes)
        unit.stirred = news or unit.changed
        self._wait(unit)

    def _wait(self, unit: Unit) -> None:
        rests = unit.stirred or Cause.TIME in unit.causes
        self._move(unit, Place.RESTING if rests else Place.WAITING)
        if not unit.stirred:
            self._concerned.setdefault(unit.causes, {})[unit.key] = unit
        elif not unit.jumped:
            self._jumping.push(unit)
        if rests:
            self._timed.push(unit, unit.until)

    def _stir(self, unit: Unit) -> None:
        if unit.place is Place.FLYING:
            unit.changed = True
        elif unit.place in (Place.WAITING, Place.RESTING) and not unit.stirred:
            unit.stirred = True
            if unit.until <= self._now:
                self._enter(unit)
            else:
                self._wait(unit)
