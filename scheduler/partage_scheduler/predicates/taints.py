"""Cordoned nodes, and nodes with a taint that a pod does not tolerate.

Nodes with equal taints are one class, so a pod is compared with a few classes instead of thousands of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from partage_plugins.answers import Flags
from partage_plugins.api.reasons import Reason
from partage_plugins.cache import Cache
from partage_scheduler.decision import FilteredNodes
from partage_scheduler.decision.slots import grown
from partage_scheduler.objects import ApiNode, ApiPod, Taint
from partage_scheduler.objects.selectors import Toleration
from partage_scheduler.predicates.memo import digest

CORDONED: Final = Reason("cordoned", "node(s) were unschedulable", lasts=True)
TAINTED: Final = Reason("tainted-several", "node(s) had untolerated taint(s)", lasts=True)
TAINTED_WITH: Final = Reason("tainted", "node(s) had untolerated taint {{{}: {}}}", lasts=True)
CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
HARD: Final = frozenset(("NoSchedule", "NoExecute"))
_NAMED: Final = 8
"""If more distinct taints than this exclude a pod, they are no longer reported one by one."""
_MOST_BYTES: Final = 8 << 20

Taints = tuple[Taint, ...]
Tolerations = tuple[Toleration, ...]


class Tainted:
    def __init__(self) -> None:
        self.version = 0
        """Grows whenever a cordon or a taint changes."""
        self._end = 0
        self._cordoned = np.zeros(0, dtype=np.bool_)
        self._cordons = 0
        self._classes: dict[Taints, int] = {(): 0}
        self._members = [0]
        """Number of nodes in each class; those without taints are not counted."""
        self._codes: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._answers = Cache[bytes, list[FilteredNodes]](_MOST_BYTES)

    def put(self, slot: int, node: ApiNode) -> None:
        self._end = max(self._end, slot + 1)
        self._codes, self._cordoned = grown(self._codes, slot + 1, 0), grown(self._cordoned, slot + 1, 0)
        self._set(slot, node.spec.taints, is_cordoned=node.spec.unschedulable)

    def remove(self, slot: int) -> None:
        if slot < self._end:
            self._set(slot, (), is_cordoned=False)

    def barred(self, pod: ApiPod) -> list[FilteredNodes]:
        if not self._cordons and len(self._classes) == 1:
            return []
        tolerations = pod.spec.tolerations
        key = digest(tolerations)
        found = self._answers.get(key)
        if found is None:
            found = [*self._by_cordon(tolerations), *self._by_taint(tolerations)]
            self._answers.put(key, found, sum(each.slots.nbytes + len(str(each.reason)) for each in found))
        return found

    def tolerable(self, tolerations: Tolerations) -> Flags | None:
        """None if that is all nodes."""
        hard = self._firsts(tolerations)
        return None if not hard else ~self._where(hard)

    def disliked(self, tolerations: Tolerations) -> NDArray[np.intp] | None:
        """How many untolerated `PreferNoSchedule` taints each node has; None if no node has any."""
        if len(self._classes) == 1:
            return None
        for_soft = tuple(each for each in tolerations if each.effect in {"", "PreferNoSchedule"})
        counts = np.zeros(max(self._classes.values()) + 1, dtype=np.intp)
        for taints, code in self._classes.items():
            soft = (taint for taint in taints if taint.effect == "PreferNoSchedule")
            counts[code] = sum(not tolerates(for_soft, taint) for taint in soft)
        return counts[self._codes[: self._end]] if counts.any() else None

    def _set(self, slot: int, taints: Taints, *, is_cordoned: bool) -> None:
        before = int(self._codes[slot])
        code = self._classes.setdefault(taints, len(self._members))
        if code == before and bool(self._cordoned[slot]) == is_cordoned:
            return
        self._answers.clear()
        self.version += 1
        self._cordons += is_cordoned - int(self._cordoned[slot])
        self._codes[slot], self._cordoned[slot] = code, is_cordoned
        if code == len(self._members):
            self._members.append(0)
        self._members[code] += bool(code)
        self._members[before] -= bool(before)
        if before and not self._members[before]:
            self._number_anew()

    def _number_anew(self) -> None:
        """Drops classes without nodes, so that pods are compared with existing ones only."""
        kept = [(taints, code) for taints, code in self._classes.items() if not code or self._members[code]]
        codes = np.zeros(len(self._members), dtype=np.intp)
        codes[[code for _, code in kept]] = np.arange(len(kept), dtype=np.intp)
        self._codes = codes[self._codes]
        self._members = [self._members[code] for _, code in kept]
        self._classes = {taints: place for place, (taints, _) in enumerate(kept)}

    def _by_cordon(self, tolerations: Tolerations) -> Iterable[FilteredNodes]:
        if self._cordons and not tolerates(tolerations, CORDON):
            yield FilteredNodes(CORDONED, self._cordoned[: self._end].copy())

    def _by_taint(self, tolerations: Tolerations) -> Iterable[FilteredNodes]:
        by_name: dict[tuple[str, str], list[int]] = {}
        for code, taint in self._firsts(tolerations).items():
            by_name.setdefault((taint.key, taint.value), []).append(code)
        if len(by_name) > _NAMED:
            yield FilteredNodes(TAINTED, self._where(code for codes in by_name.values() for code in codes))
            return
        for (key, value), codes in by_name.items():
            yield FilteredNodes(TAINTED_WITH.of(key, value), self._where(codes))

    def _firsts(self, tolerations: Tolerations) -> dict[int, Taint]:
        """The first hard taint of each class that is not tolerated, if there is one."""
        found: dict[int, Taint] = {}
        for taints, code in self._classes.items():
            for taint in taints:
                if taint.effect in HARD and not tolerates(tolerations, taint):
                    found[code] = taint
                    break
        return found

    def _where(self, codes: Iterable[int]) -> Flags:
        of_class = np.zeros(len(self._members), dtype=np.bool_)
        of_class[list(codes)] = True
        return of_class[self._codes[: self._end]]


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(_is_for(each, taint) for each in tolerations)


def _is_for(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in {"", "Equal"} and toleration.value == taint.value
