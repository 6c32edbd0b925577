"""Containers with a grant or a claim, from one list of the container runtime. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from partage_plugins.api.claims import ClaimUid
from partage_plugins.api.names import ContainerKey


@dataclass(frozen=True)
class RuntimeContainer:
    id: str
    key: ContainerKey
    pid: int | None
    """Its first process, in the node's pid namespace; None if it is not running, or the runtime does not report it."""
    running: bool
    claim: ClaimUid | None = None
    """The claim that its limits come from. A claim may have several containers."""


class Listing(Mapping[str, RuntimeContainer]):
    """Containers of one list, by the runtime's ids."""

    def __init__(self, containers: Iterable[RuntimeContainer] = ()) -> None:
        self._by_id = {each.id: each for each in containers}
        self._by_key = dict[ContainerKey, list[RuntimeContainer]]()
        for each in self._by_id.values():
            self._by_key.setdefault(each.key, []).append(each)

    def __getitem__(self, id_: str) -> RuntimeContainer:
        return self._by_id[id_]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def keys_in_use(self) -> AbstractSet[ContainerKey]:
        return self._by_key.keys()

    def of(self, key: ContainerKey) -> Sequence[RuntimeContainer]:
        """At most one, except for a claim."""
        return self._by_key.get(key, ())
