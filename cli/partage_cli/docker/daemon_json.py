"""The content of Docker's `daemon.json` with and without our runtime. Pure.

Everything that others wrote keeps its order and meaning. A file that is still as we left it gets its old bytes back.

When dockerd reloads its settings, it keeps the old value of a key that is missing. So `runtimes` and `default-runtime`
stay in the file until it has forgotten ours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Struct

from partage_plugins.errors import Refused

RUNTIME: Final = "partage"
STOCK: Final = "runc"
"""Dockerd's own runtime, the default if the settings name none."""
MOST_BYTES: Final = 1 << 20
_RUNTIMES: Final = "runtimes"
_DEFAULT: Final = "default-runtime"
_RESOURCES: Final = "node-generic-resources"
_MOST_WRITTEN: Final = 8
_OURS: Final = "partage-"
"""Prefix of our generic resources."""


@dataclass(frozen=True, kw_only=True)
class Registration:
    """The registration that the file should have."""

    program: str
    is_default: bool = False
    """Whether it creates every container that names no other runtime."""
    resources: Sequence[str] = ()
    """The generic resources for Swarm, such as `partage-milli=2000`."""


class Before(Struct, frozen=True, kw_only=True):
    """What is needed to undo a registration."""

    v: int = 1
    content: bytes | None
    """The file before the first registration; None: there was no file."""
    default: str | None = None
    """The former default runtime."""
    written_sha256: tuple[str, ...] = ()
    """Digests of what we wrote since, newest last; a killed command may not have written the last one."""

    def is_nobody_elses(self, now: bytes | None) -> bool:
        """Whether nobody else has changed the file since."""
        return now == self.content or (now is not None and _digest(now) in self.written_sha256)

    def once_written(self, written: bytes) -> Before:
        """The same with the digest of what is written next."""
        digests = (*self.written_sha256, _digest(written))[-_MOST_WRITTEN:]
        return Before(content=self.content, default=self.default, written_sha256=tuple(dict.fromkeys(digests)))


def registered(now: bytes | None, wanted: Registration, before: Before | None) -> tuple[bytes, Before]:
    """The file's new content, and what undoes it; `before` is that of an earlier registration. Raises `Refused`."""
    content = _read(now)
    runtimes = content.setdefault(_RUNTIMES, {})
    if not isinstance(runtimes, dict):
        raise Refused(f"{_RUNTIMES} is {_shown(runtimes)}; allowed: an object of runtimes by name")
    if before is None and RUNTIME in runtimes:
        raise Refused(f"{_RUNTIMES} has {RUNTIME} already, which this command did not write; take it out there first")
    before = Before(content=now, default=content.get(_DEFAULT)) if before is None else _as_of(now, before)
    runtimes[RUNTIME] = {"path": wanted.program}
    was_default = content.get(_DEFAULT) == RUNTIME
    _set_default(content, before, is_default=wanted.is_default)
    if was_default:
        content.setdefault(_DEFAULT, STOCK)
    _set_resources(content, wanted.resources)
    written = _written(content)
    return written, before.once_written(written)


def unregistered(now: bytes | None, before: Before) -> bytes | None:
    """The content without our runtime; None: remove the file. Raises `Refused`."""
    return _as_of(now, before).content


def forgetting(now: bytes | None, before: Before) -> tuple[bytes, Before]:
    """Content that makes a running dockerd forget our runtime, and what undoes that. Raises `Refused`."""
    before = _as_of(now, before)
    content = _read(before.content)
    content.setdefault(_RUNTIMES, {})
    content.setdefault(_DEFAULT, STOCK)
    written = _written(content)
    return written, before.once_written(written)


def _as_of(now: bytes | None, before: Before) -> Before:
    """If somebody has changed the file since, the former content is the present one without our runtime."""
    return before if before.is_nobody_elses(now) else Before(content=_without(now, before), default=before.default)


def _without(now: bytes | None, before: Before) -> bytes | None:
    if now is None:
        return None
    content = _read(now)
    runtimes = content.get(_RUNTIMES)
    if isinstance(runtimes, dict):
        runtimes.pop(RUNTIME, None)
        if not runtimes:
            del content[_RUNTIMES]
    if before.default is None and content.get(_DEFAULT) == STOCK:
        del content[_DEFAULT]
    _set_default(content, before, is_default=False)
    _set_resources(content, ())
    return _written(content)


def _set_default(content: dict[str, Any], before: Before, *, is_default: bool) -> None:
    if is_default:
        content[_DEFAULT] = RUNTIME
    elif content.get(_DEFAULT) == RUNTIME:
        del content[_DEFAULT]
        if before.default is not None:
            content[_DEFAULT] = before.default


def _set_resources(content: dict[str, Any], ours: Sequence[str]) -> None:
    there = content.get(_RESOURCES, [])
    if not isinstance(there, list):
        raise Refused(f"{_RESOURCES} is {_shown(there)}; allowed: a list of NAME=VALUE")
    every = [*(each for each in there if not str(each).startswith(_OURS)), *ours]
    if every:
        content[_RESOURCES] = every
    else:
        content.pop(_RESOURCES, None)


def _read(now: bytes | None) -> dict[str, Any]:
    if now is None or not now.strip():
        return {}
    if len(now) > MOST_BYTES:
        raise Refused(f"it has {len(now)} bytes; allowed: at most {MOST_BYTES}")
    try:
        content = json.loads(now, object_pairs_hook=_once)
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise Refused(f"it is no JSON that could be changed safely: {error}") from None
    if not isinstance(content, dict):
        raise Refused(f"it is {_shown(content)}; allowed: an object")
    return content


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Docker rejects duplicate keys, so no value of them is chosen here."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} stands twice in one object")
    return found


def _written(content: dict[str, Any]) -> bytes:
    return json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _shown(value: object) -> str:
    return f"{json.dumps(value, ensure_ascii=False):.60}"
