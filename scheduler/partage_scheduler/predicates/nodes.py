"""What nodes are called and labelled, by slot: the arrays that all families look things up in.

For each label that nodes have and that anybody asked for there is a column: a small number for each value, by slot, so
that "which nodes have this value" is one comparison of arrays. A column is made when it is first asked for and kept
current from then on; those that was not asked for longest go first when all take too many bytes. A label that no node
has costs nothing: pods may name as many of them as they like. `version` grows whenever a label, a name or a node's
being there changes; whatever was derived is right as long as it has not grown. Nodes say much about themselves every
few minutes and seldom anything that counts here.

`shelf` is where those who count by places keep what they made of the columns, all of them within a number of bytes.
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
"""The code of a node that lacks the label; as an index it means the last place, which is kept free for it."""
_COLUMN_BYTES: Final = 32 << 20
_SHELF_BYTES: Final = 32 << 20
_VALUE_BYTES: Final = 128
"""What a value takes in a column: the text is the node's own."""
_SLACK: Final = 64


class Column:
    """One label of all nodes. Codes are as wide as indexes: narrower ones cost four times as much to look up by."""

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
        """What columns and the shelf take."""
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
        """Which value of a label each slot's node has."""
        return self.column(key).codes[: self.end]

    def column(self, key: str) -> Column:
        """Codes and what they mean; good until `version` grows."""
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
        """What no node has any more is forgotten."""
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
        """Nodes that come and go each with a name of its own must not make columns longer for ever."""
        most = 2 * len(self._by_slot) + _SLACK
        for key in [key for key, column in self._columns.items() if len(column.values) > most]:
            self._columns.pop(key)
