"""Checks that everything crishim needs is available, and writes the faults to a file.

A fault stops crishim from honouring allocations but not from serving, so nothing else would show it. The advertiser and
`partage doctor` read the file. If crishim cannot write it, it removes the old one: a missing file means not ready.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import structlog

from partage_base.condition import MOST, Condition, Fault, Guarded, encode_condition, fault
from partage_base.cri import RuntimeConfig
from partage_base.daemon.health import Health
from partage_base.daemon.plugin_host import WatchedHost
from partage_base.daemon.web import METRICS
from partage_base.files import write_whole
from partage_base.version import VERSION
from partage_crishim.parts import Parts
from partage_crishim.proxy import Counters, answers
from partage_crishim.rules.errors import NodeNotReady

LOOK_EVERY_S: Final = 1.0
_WRITE_EVERY_S: Final = 5.0
_KNOCK_WITHIN_S: Final = 1.0
_HEALTH: Final = "allocations"
_NO_RUNTIME: Final = "the container runtime does not answer on {}; is it running, and is that its socket?"
RESTORES: Final = (
    "containerd restores checkpoints when it creates containers, whose cards can't be counted then; set "
    "enable_experimental_restore_via_create = false in its configuration and restart it; before 2.2.7 and 2.3.4, which "
    "have no such setting, take CRIU off the node or update containerd"
)
CLOSED: Final = (
    "partage: crishim on this node cannot read its settings, so it starts no container with an allocation; "
    "`partage doctor` on the node shows the mistake to its administrator, and kubelet tries again"
)
"""The message that users see while crishim's settings are invalid."""
_log = structlog.get_logger()


def faults(mistakes: Sequence[str], parts: Parts, host: WatchedHost, health: Health) -> Iterator[Fault]:
    """Current faults that can be found without waiting for a peer."""
    if mistakes:
        more = f" (and {len(mistakes) - 1} more mistakes)" if len(mistakes) > 1 else ""
        yield fault(
            "settings", f"its settings cannot be read: {mistakes[0]}{more}; `partage-crishim --check` shows all"
        )
    keys = parts.keyring.current()
    if not keys.keys:  # a bad key beside a good one stops no container, and is in the log
        yield fault("keys", f"no key verifies allocations: {'; '.join(map(str, keys.faults))}")
    for why in host.faults:
        yield fault("plugins", f"a node plugin does not run: {why}")
    try:
        with parts.reservations.locked_at_once():
            pass  # taking the lock reads the folder
        parts.records.adjusted()
        parts.records.pods()
    except (OSError, NodeNotReady, ValueError) as error:
        yield _of_state(error)
    if (why_no_page := health.against_ready.get(METRICS)) is not None:
        yield fault("metrics", why_no_page, refuses=False)


def _of_state(error: Exception) -> Fault:
    return fault("state", f"its folder below /run/partage cannot be used: {error}; is the disk full, or read-only?")


class RuntimeProbe:
    """Checks that the container runtime is reachable, and that it does not create containers without going through us.

    Reachability is probed with a connection, only after a client was turned away; the configuration is checked once per
    start of the runtime.
    """

    def __init__(self, path: Path, counters: Counters, config: Callable[[], Awaitable[RuntimeConfig]]) -> None:
        self._path = str(path)
        self._counters = counters
        self._config = config
        self._turned_away = -1
        self._is_away = False

    async def faults(self) -> Sequence[Fault]:
        """One fault if the runtime does not answer or restores checkpoints at create, else none."""
        if self._is_away or self._counters.turned_away != self._turned_away:
            self._turned_away = self._counters.turned_away
            self._is_away = not await answers(self._path, _KNOCK_WITHIN_S)
        if self._is_away:
            return (fault("runtime", _NO_RUNTIME.format(self._path)),)
        try:
            return (fault("restore", RESTORES),) if (await self._config()).restores else ()
        except NodeNotReady:  # the next client that is turned away triggers the probe
            return ()


class ConditionFile:
    """The condition of one crishim, and the file that reports it."""

    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        path: Path,
        health: Health,
        runtime: RuntimeProbe,
        looks: Callable[[], Iterable[Fault]],
        *,
        keys: Callable[[], Iterable[str]] = tuple,
        guarded: Callable[[], tuple[Guarded, ...]] = tuple,
    ) -> None:
        """`keys` returns the ids of keys that verify allocations, `guarded` the containers recently kept from cards."""
        self._path = path
        self._health = health
        self._runtime = runtime
        self._looks, self._keys, self._guarded = looks, keys, guarded
        self._told: tuple[Fault, ...] = ()
        self._written: Condition | None = None
        self._written_s = float("-inf")

    async def look(self) -> None:
        """Check once, write the file if it changed or is due, and log what changed."""
        faults = (*self._looks(), *await self._runtime.faults())[:MOST]
        keys = tuple(sorted(self._keys())[:MOST])
        condition = Condition(faults=faults, guarded=self._guarded(), keys=keys, version=VERSION)
        if condition != self._written or time.monotonic() - self._written_s >= _WRITE_EVERY_S:
            try:
                self._write(condition)
            except OSError as error:
                faults = (*(each for each in faults if each.cause != "state"), _of_state(error))
        self._tell(faults)

    def _write(self, condition: Condition) -> None:
        self._written = None
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self._path, encode_condition(condition))
        except OSError:
            with contextlib.suppress(OSError):
                self._path.unlink()
            raise
        self._written, self._written_s = condition, time.monotonic()

    def _tell(self, faults: tuple[Fault, ...]) -> None:
        for each in faults:
            if each not in self._told:
                _log.error("fault found, crishim keeps serving", cause=each.cause, why=each.sentence)
        for each in self._told:
            if each not in faults:
                _log.info("fault cleared", cause=each.cause, what=each.sentence)
        self._told = faults
        against = [each.sentence for each in faults if each.refuses]
        if against:
            self._health.unready(_HEALTH, "; ".join(against))
        else:
            self._health.ready(_HEALTH)
