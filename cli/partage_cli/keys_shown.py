"""What ``partage keys list`` prints. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from partage_base.keyring import KeyEntry, Overview, Use
from partage_cli.tables import age, table

_HEADER: Final = ("ID", "USE", "FILE", "AGE")
_WIDE: Final = (*_HEADER, "PRIVATE", "SINCE", "MEANS")
_MEANS: Final = {
    Use.SIGNING: "signs, and verifies",
    Use.WAITING: "verifies; signs when the one before it is retired",
    Use.VERIFY_ONLY: "verifies",
}


def as_table(seen: Overview, now: float, *, wide: bool) -> str:
    """For people. `now` is in seconds since the epoch."""
    return table(
        _WIDE if wide else _HEADER, ([*_cells(entry, now), *(_more(entry) if wide else ())] for entry in seen.entries)
    )


def as_json(seen: Overview) -> bytes:
    """For programs: a list of keys."""
    rows = [
        {
            "id": entry.id,
            "use": entry.use.value,
            "public": _path(entry.public),
            "private": _path(entry.private),
            "since": _since(entry),
        }
        for entry in seen.entries
    ]
    return msgspec.json.encode(rows) + b"\n"


def _cells(entry: KeyEntry, now: float) -> tuple[str, ...]:
    lived = None if entry.since is None else now - entry.since
    return (entry.id, entry.use.value, _path(entry.public or entry.private) or "", age(lived))


def _more(entry: KeyEntry) -> tuple[str, ...]:
    return (_path(entry.private) or "-", _since(entry) or "unknown", _MEANS[entry.use])


def _since(entry: KeyEntry) -> str | None:
    if entry.since is None:
        return None
    return datetime.fromtimestamp(entry.since, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _path(file: Path | None) -> str | None:
    return None if file is None else str(file)
