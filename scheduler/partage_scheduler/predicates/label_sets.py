"""The pods on nodes, as affinity terms and spread constraints select them: by label set, and by group.

Pods of one namespace with equal labels form one label set, so a selector is matched against a few sets instead of
thousands of pods. A group holds the pods that some terms select; it is gathered on first use and counted incrementally
from then on. Groups are indexed by namespace and by a label that all their pods have, so a new set is matched against
few groups, and the groups of one namespace cost the pods of others nothing. All groups share a byte limit, which also
bounds how many of them one pod counts in; the least recently used are dropped first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from partage_plugins.cache import Cache
from partage_scheduler.predicates.nodes import Nodes
from partage_scheduler.predicates.pod_selectors import Labels, Namespaces, PodSelector
from partage_scheduler.predicates.topology_domains import Tally

MOST_BYTES: Final = 32 << 20
_KIND_BYTES: Final = 256
"""Memory of a link between a kind and a group."""
_GROUP_BYTES: Final = 16 << 10
"""Least size charged for a group: each new kind may have to be matched against it."""
Pair = tuple[str, str]


class LabelSetKey(NamedTuple):
    """Namespace, labels and deletion state that the pods of one kind share."""

    namespace: str
    labels: frozenset[Pair]
    is_going: bool


class GroupKey(NamedTuple):
    """Pods that all of these selectors select, with or without those that are being deleted."""

    choosers: tuple[PodSelector, ...]
    with_going: bool


class LabelSet:
    """Pods with equal keys, and how many of them are on each slot."""

    __slots__ = ("by_slot", "groups", "is_going", "key", "labels", "namespace")

    def __init__(self, key: LabelSetKey) -> None:
        self.key = key
        self.namespace, self.is_going = key.namespace, key.is_going
        self.labels = dict(key.labels)
        self.by_slot: dict[int, int] = {}
        self.groups: dict[PodGroup, None] = {}


class PodGroup:
    """Pods that terms select, and where they are."""

    __slots__ = ("_asking_bytes", "key", "kinds", "tally")

    def __init__(self, key: GroupKey, nodes: Nodes) -> None:
        self.key = key
        self.tally = Tally(nodes)
        self.kinds: dict[LabelSet, None] = {}
        self._asking_bytes = sum(each.bytes for each in key.choosers)

    @property
    def bytes(self) -> int:
        return _GROUP_BYTES + self._asking_bytes + self.tally.bytes + _KIND_BYTES * len(self.kinds)

    @property
    def handle(self) -> Pair | None:
        """A label that all its pods have, if a selector requires one."""
        return next((each.handle for each in self.key.choosers if each.handle is not None), None)

    @property
    def within(self) -> frozenset[str] | None:
        """The namespaces that all its pods are in; None if they may be in any."""
        return next((each.within for each in self.key.choosers if each.within is not None), None)


class Handled(Protocol):
    """Something that can be looked up by a label and by namespaces."""

    @property
    def handle(self) -> Pair | None:
        """The label; None if only a scan over all finds it."""
        ...

    @property
    def within(self) -> frozenset[str] | None:
        """None stands for all namespaces."""
        ...


H = TypeVar("H", bound=Handled)
_ANYWHERE: Final = frozenset((None,))


class ByHandle(Generic[H]):
    """Index of groups or terms by the namespace and labels of the pods that they select."""

    def __init__(self) -> None:
        self._found: dict[tuple[str | None, Pair | None], dict[H, None]] = {}

    def add(self, each: H) -> None:
        for namespace in _ANYWHERE if each.within is None else each.within:
            self._found.setdefault((namespace, each.handle), {})[each] = None

    def remove(self, each: H) -> None:
        for namespace in _ANYWHERE if each.within is None else each.within:
            found = self._found[namespace, each.handle]
            del found[each]
            if not found:
                del self._found[namespace, each.handle]

    def candidates(self, namespace: str, labels: Iterable[Pair]) -> list[H]:
        """All that may select a pod with these labels in this namespace."""
        found: list[H] = []
        if self._found:
            pairs = (None, *labels)
            for place in (None, namespace):
                for pair in pairs:
                    found += self._found.get((place, pair), ())
        return found


class LabelSetIndex:
    def __init__(self, nodes: Nodes, namespaces: Namespaces) -> None:
        self._nodes, self._namespaces = nodes, namespaces
        self._kinds: dict[LabelSetKey, LabelSet] = {}
        self._by_pair: dict[Pair, dict[LabelSet, None]] = {}
        self._by_namespace: dict[str, dict[LabelSet, None]] = {}
        self._groups: dict[GroupKey, PodGroup] = {}
        self._kept = Cache[PodGroup, PodGroup](MOST_BYTES)
        self._by_handle = ByHandle[PodGroup]()

    @property
    def bytes(self) -> int:
        return self._kept.bytes

    def same(self, key: LabelSetKey) -> LabelSetKey:
        """The equal key that is stored here, so that thousands of equal pods share one."""
        kind = self._kinds.get(key)
        return key if kind is None else kind.key

    def take(self, slot: int, key: LabelSetKey) -> None:
        kind = self._kinds.get(key) or self._made(key)
        kind.by_slot[slot] = kind.by_slot.get(slot, 0) + 1
        for group in kind.groups:
            group.tally.add(slot, 1)

    def give_back(self, slot: int, key: LabelSetKey) -> None:
        kind = self._kinds[key]
        for group in kind.groups:
            group.tally.add(slot, -1)
        kind.by_slot[slot] -= 1
        if not kind.by_slot[slot]:
            del kind.by_slot[slot]
            if not kind.by_slot:
                self._drop(kind)

    def group(self, choosers: tuple[PodSelector, ...], *, with_going: bool = True) -> PodGroup:
        """The pods that all of these select."""
        key = GroupKey(choosers, with_going)
        group = self._groups.get(key) or self._gathered(key)
        for other in self._kept.put(group, group, group.bytes):
            self._dissolve(other)
        return group

    def namespaces_changed(self) -> None:
        """Drops groups that select by namespace labels; they are gathered again on next use."""
        for group in [
            each
            for each in self._groups.values()
            if any(chooser.namespace_selector is not None for chooser in each.key.choosers)
        ]:
            self._kept.pop(group)
            self._dissolve(group)

    def _made(self, key: LabelSetKey) -> LabelSet:
        kind = self._kinds[key] = LabelSet(key)
        self._by_namespace.setdefault(key.namespace, {})[kind] = None
        for pair in key.labels:
            self._by_pair.setdefault(pair, {})[kind] = None
        for group in self._by_handle.candidates(key.namespace, key.labels):
            self._join(kind, group)
        return kind

    def _drop(self, kind: LabelSet) -> None:
        del self._kinds[kind.key]
        for group in kind.groups:
            del group.kinds[kind]
        there = self._by_namespace[kind.namespace]
        del there[kind]
        if not there:
            del self._by_namespace[kind.namespace]
        for pair in kind.key.labels:
            found = self._by_pair[pair]
            del found[kind]
            if not found:
                del self._by_pair[pair]

    def _gathered(self, key: GroupKey) -> PodGroup:
        group = self._groups[key] = PodGroup(key, self._nodes)
        self._by_handle.add(group)
        for kind in self._candidates(group):
            if self._join(kind, group):
                group.tally.gather(kind.by_slot)
        return group

    def _candidates(self, group: PodGroup) -> list[LabelSet]:
        if group.handle is not None:
            return list(self._by_pair.get(group.handle, ()))
        if group.within is None:
            return list(self._kinds.values())
        return [kind for namespace in group.within for kind in self._by_namespace.get(namespace, ())]

    def _dissolve(self, group: PodGroup) -> None:
        """Stops counting it; a caller may still read its last counts."""
        del self._groups[group.key]
        self._by_handle.remove(group)
        group.tally.forget()
        for kind in group.kinds:
            del kind.groups[group]

    def _join(self, kind: LabelSet, group: PodGroup) -> bool:
        if kind.is_going and not group.key.with_going:
            return False
        labels: Labels = self._namespaces.labels(kind.namespace)
        if not all(each.chooses(kind.namespace, labels, kind.labels) for each in group.key.choosers):
            return False
        kind.groups[group] = group.kinds[kind] = None
        return True
