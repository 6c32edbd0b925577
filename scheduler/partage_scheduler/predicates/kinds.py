"""The pods that are on nodes, as far as other pods may ask about them: by kind, and by group.

Pods of one namespace with the same labels are one kind, so that what is matched against a selector are a few kinds and
not thousands of pods. A group is who some terms are about; it is made when somebody first asks and counted from then
on. A group is found by a label that all its pods have, so that a kind that is new is set against few groups. Groups
that nobody asked about for longest go first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from partage_scheduler.predicates.choosing import Chooser, Labels
from partage_scheduler.predicates.namespaces import Namespaces
from partage_scheduler.predicates.nodes import Nodes
from partage_scheduler.predicates.places import Tally

GROUPS: Final = 1024
Pair = tuple[str, str]


class KindKey(NamedTuple):
    """What pods of one kind have in common."""

    namespace: str
    labels: frozenset[Pair]
    is_going: bool


class GroupKey(NamedTuple):
    """Pods that all of some choosers choose; those that are being deleted count or not."""

    choosers: tuple[Chooser, ...]
    with_going: bool


class Kind:
    """Pods that look alike, and where they are."""

    __slots__ = ("by_slot", "groups", "is_going", "key", "labels", "namespace")

    def __init__(self, key: KindKey) -> None:
        self.key = key
        self.namespace, self.is_going = key.namespace, key.is_going
        self.labels = dict(key.labels)
        self.by_slot: dict[int, int] = {}
        self.groups: dict[Group, None] = {}


class Group:
    """Pods that terms are about, and where they are."""

    __slots__ = ("key", "kinds", "tally")

    def __init__(self, key: GroupKey, nodes: Nodes) -> None:
        self.key = key
        self.tally = Tally(nodes)
        self.kinds: dict[Kind, None] = {}

    @property
    def handle(self) -> Pair | None:
        """A label that all of them have."""
        return next((each.handle for each in self.key.choosers if each.handle is not None), None)


class Handled(Protocol):
    """What can be found by a label."""

    @property
    def handle(self) -> Pair | None:
        """The label; None where it can only be found by asking all."""
        ...


H = TypeVar("H", bound=Handled)


class ByHandle(Generic[H]):
    """Things that choose pods, found by a pod's labels."""

    def __init__(self) -> None:
        self._by_pair: dict[Pair | None, dict[H, None]] = {}

    def add(self, each: H) -> None:
        """One more."""
        self._by_pair.setdefault(each.handle, {})[each] = None

    def remove(self, each: H) -> None:
        """One less."""
        found = self._by_pair[each.handle]
        del found[each]
        if not found:
            del self._by_pair[each.handle]

    def candidates(self, labels: Iterable[Pair]) -> Iterator[H]:
        """Those that may choose a pod with these labels; no other does."""
        if not self._by_pair:
            return
        yield from self._by_pair.get(None, ())
        for pair in labels:
            yield from self._by_pair.get(pair, ())


class Kinds:
    """All pods on nodes, by kind."""

    def __init__(self, nodes: Nodes, namespaces: Namespaces, *, groups: int = GROUPS) -> None:
        self._nodes, self._namespaces, self._most = nodes, namespaces, groups
        self._kinds: dict[KindKey, Kind] = {}
        self._by_pair: dict[Pair, dict[Kind, None]] = {}
        self._groups: OrderedDict[GroupKey, Group] = OrderedDict()
        self._by_handle = ByHandle[Group]()

    def same(self, key: KindKey) -> KindKey:
        """The key as it is kept here: thousands of equal pods need it once."""
        kind = self._kinds.get(key)
        return key if kind is None else kind.key

    def take(self, slot: int, key: KindKey) -> None:
        """One more pod of this kind is on that node."""
        kind = self._kinds.get(key) or self._made(key)
        kind.by_slot[slot] = kind.by_slot.get(slot, 0) + 1
        for group in kind.groups:
            group.tally.add(slot, 1)

    def give_back(self, slot: int, key: KindKey) -> None:
        """One pod less."""
        kind = self._kinds[key]
        for group in kind.groups:
            group.tally.add(slot, -1)
        kind.by_slot[slot] -= 1
        if not kind.by_slot[slot]:
            del kind.by_slot[slot]
            if not kind.by_slot:
                self._drop(kind)

    def group(self, choosers: tuple[Chooser, ...], *, with_going: bool = True) -> Group:
        """The pods that all of these choose."""
        key = GroupKey(choosers, with_going)
        group = self._groups.get(key)
        if group is None:
            return self._gathered(key)
        self._groups.move_to_end(key)
        return group

    def namespaces_changed(self) -> None:
        """Groups that choose by labels of namespaces are gathered anew when somebody asks."""
        for group in [
            each
            for each in self._groups.values()
            if any(chooser.namespace_selector is not None for chooser in each.key.choosers)
        ]:
            self._dissolve(group)

    def _made(self, key: KindKey) -> Kind:
        kind = self._kinds[key] = Kind(key)
        for pair in key.labels:
            self._by_pair.setdefault(pair, {})[kind] = None
        for group in self._by_handle.candidates(key.labels):
            self._join(kind, group)
        return kind

    def _drop(self, kind: Kind) -> None:
        del self._kinds[kind.key]
        for group in kind.groups:
            del group.kinds[kind]
        for pair in kind.key.labels:
            found = self._by_pair[pair]
            del found[kind]
            if not found:
                del self._by_pair[pair]

    def _gathered(self, key: GroupKey) -> Group:
        if len(self._groups) >= self._most:
            self._dissolve(next(iter(self._groups.values())))
        group = self._groups[key] = Group(key, self._nodes)
        self._by_handle.add(group)
        handle = group.handle
        for kind in tuple(self._kinds.values() if handle is None else self._by_pair.get(handle, ())):
            if self._join(kind, group):
                for slot, number in kind.by_slot.items():
                    group.tally.add(slot, number)
        return group

    def _dissolve(self, group: Group) -> None:
        del self._groups[group.key]
        self._by_handle.remove(group)
        for kind in group.kinds:
            del kind.groups[group]

    def _join(self, kind: Kind, group: Group) -> bool:
        """Whether pods of that kind belong to the group, which both then know."""
        if kind.is_going and not group.key.with_going:
            return False
        labels: Labels = self._namespaces.labels(kind.namespace)
        if not all(each.chooses(kind.namespace, labels, kind.labels) for each in group.key.choosers):
            return False
        kind.groups[group] = group.kinds[kind] = None
        return True
