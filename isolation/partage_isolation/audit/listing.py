"""Containers with a grant or a claim, as the container runtime listed them at one moment. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from partage_plugins.vocabulary.claims import ClaimUid
from partage_plugins.vocabulary.names import ContainerKey


@dataclass(frozen=True)
class RuntimeContainer:
    id: str
    key: ContainerKey
    pid: int | None
    """Of its first process, as the node has it; None where it does not run, or the runtime does not say."""
    running: bool
    claim: ClaimUid | None = None
    """That it has its limits by. Of one claim there may be several containers."""


class Listing(Mapping[str, RuntimeContainer]):
    """Containers of one moment, by the runtime's ids."""

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
        """One, but of a claim."""
        return self._by_key.get(key, ())
