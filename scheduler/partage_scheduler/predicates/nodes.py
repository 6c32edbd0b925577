"""Node names and labels by slot: the arrays that all filter families use.

Each label that nodes have and a pod has referred to has a column: a small integer for each value, by slot, so that
"which nodes have this value" is one comparison of arrays. A column is built on first use and kept current from then on;
the least recently used are evicted above a byte limit. A label that no node has costs nothing, so pods may refer to any
number of them. `version` grows whenever a node comes or goes or its labels or name change; derived data is valid as
long as it has not grown. Nodes update their status every few minutes, but seldom what counts here.

`shelf` caches what the counts by topology domain derive from columns, all of it within one byte limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from partage_plugins.answers import Flags
from partage_plugins.cache import Cache
from partage_scheduler.decision.slots import grown
from partage_scheduler.objects import ApiNode

NOWHERE: Final = -1
"""Code of a node without the label; as an index it means the last element, which is reserved for it."""
_COLUMN_BYTES: Final = 32 << 20
_SHELF_BYTES: Final = 32 << 20
_VALUE_BYTES: Final = 128
"""Memory of a value in a column, without its text, which the node object holds."""
_SLACK: Final = 64


class Column:
    """One label of all nodes. Codes are as wide as indexes: looking up by narrower ones takes four times as long."""

    __slots__ = ("codes", "values")

    def __init__(self, size: int) -> None:
        self.codes: NDArray[np.intp] = np.full(size, NOWHERE, dtype=np.intp)
        self.values: dict[str, int] = {}

    def put(self, slot: int, value: str | None) -> None:
        self.codes = grown(self.codes, slot + 1, NOWHERE)
        self.codes[slot] = NOWHERE if value is None else self.values.setdefault(value, len(self.values))


class Nodes:
    def __init__(self) -> None:
        self.version = 0
        self.end = 0
        """One more than the highest slot that a node was ever in."""
        self._names: dict[str, int] = {}
        self._by_slot: dict[int, tuple[str, Mapping[str, str]]] = {}
        self._keys: Counter[str] = Counter()
        """How many nodes have each label."""
        self._columns = Cache[str, Column](_COLUMN_BYTES)
        self._nowhere = Column(0)
        self.shelf = Cache[Any, Any](_SHELF_BYTES)

    @property
    def bytes(self) -> int:
        """Memory of the columns and the shelf."""
        return self._columns.bytes + self.shelf.bytes

    def __len__(self) -> int:
        return len(self._by_slot)

    def slot(self, name: str) -> int | None:
        return self._names.get(name)

    def put(self, slot: int, node: ApiNode) -> None:
        now = node.metadata.name, node.metadata.labels
        before = self._by_slot.get(slot)
        if before == now:
            return
        if before is not None:
            self._unname(slot, before[0])
            self._lose(before[1])
        self._by_slot[slot], self._names[now[0]] = now, slot
        self._keys.update(now[1].keys())
        self.end = max(self.end, slot + 1)
        self.version += 1
        for key, column in self._columns.items():
            column.put(slot, now[1].get(key))
        self._forget_old_values()

    def remove(self, slot: int) -> None:
        before = self._by_slot.pop(slot, None)
        if before is None:
            return
        self._unname(slot, before[0])
        self._lose(before[1])
        self.version += 1
        for column in self._columns.values():
            column.put(slot, None)

    def codes(self, key: str) -> NDArray[np.intp]:
        """Code of each slot's value of a label."""
        return self.column(key).codes[: self.end]

    def column(self, key: str) -> Column:
        """Codes and the values they stand for; valid until `version` grows."""
        column = self._columns.get(key)
        if column is not None:
            return column
        if key in self._keys:
            return self._made(key)
        self._nowhere.codes = grown(self._nowhere.codes, self.end, NOWHERE)
        return self._nowhere

    def there(self) -> Flags:
        flags = np.zeros(self.end, dtype=np.bool_)
        flags[list(self._by_slot)] = True
        return flags

    def _unname(self, slot: int, name: str) -> None:
        if self._names.get(name) == slot:
            del self._names[name]

    def _lose(self, labels: Mapping[str, str]) -> None:
        """Forgets labels that no node has any more."""
        self._keys.subtract(labels.keys())
        for key in labels:
            if not self._keys[key]:
                del self._keys[key]
                self._columns.pop(key)

    def _made(self, key: str) -> Column:
        column = Column(self.end)
        for slot, (_, labels) in self._by_slot.items():
            value = labels.get(key)
            if value is not None:
                column.put(slot, value)
        self._columns.put(key, column, column.codes.nbytes + _VALUE_BYTES * len(column.values))
        return column

    def _forget_old_values(self) -> None:
        """Bounds columns: nodes that come and go, each with a unique value, would otherwise grow them without limit."""
        most = 2 * len(self._by_slot) + _SLACK
        for key in [key for key, column in self._columns.items() if len(column.values) > most]:
            self._columns.pop(key)
