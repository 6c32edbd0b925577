"""Output of ``partage drain --dry-run``. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from partage_cli.drain.question import Drained, Leaver
from partage_cli.tables import amount, few, printable, short_id, table

_HEADER: Final = ("POD", "OWNER", "CARD", "SHARE", "MEMORY", "THEN")


def as_text(found: Drained) -> str:
    """A table with one line for each card that a pod holds."""
    if not found.pods:
        return f"no pod holds a card of {printable(found.node)}\n"
    return table(_HEADER, (row for each in found.pods for row in _rows(each)))


def notes(found: Drained) -> Iterator[str]:
    """Notes beside the table, one line each."""
    yield from found.notes
    bare = [each.pod for each in found.pods if not each.owner and each.state not in {"stays", "leaves already"}]
    if bare:
        yield f"nothing makes these pods again, and `kubectl drain` evicts them only with --force: {few(bare)}"


def _rows(pod: Leaver) -> Iterator[tuple[str, ...]]:
    begins = (printable(pod.pod), printable(pod.owner or "none"))
    for number, card in enumerate(pod.cards):
        shown = (short_id(card.card), str(card.share_milli), amount(card.memory_bytes))
        yield (*begins, *shown, _then(pod)) if not number else ("", "", *shown, "")


def _then(pod: Leaver) -> str:
    if pod.state == "fits":
        return f"fits on {printable(pod.goes_to)}"
    return printable(": ".join(filter(None, (pod.state, pod.message))))
