"""Reads allocations without a key: what is written is taken as it is. For people who look, never to decide by."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from partage_plugins.codecs import decode_allocation
from partage_plugins.errors import PartageError
from partage_plugins.vocabulary import Allocation
from partage_plugins.vocabulary.keys import ALLOCATION
from partage_plugins.vocabulary.kinds import AnyKind
from partage_scheduler.objects import ApiPod


def as_written(kinds: Iterable[AnyKind]) -> Callable[[ApiPod], Allocation | None]:
    """Instead of `signing.Trust.trusted`."""
    known = tuple(kinds)

    def read(pod: ApiPod) -> Allocation | None:
        text = pod.metadata.annotations.get(ALLOCATION)
        if text is None:
            return None
        try:
            return decode_allocation(text, known)
        except PartageError:
            return None

    return read
