"""The settings of partage's schedulers as published on their Leases, and the keys that verify allocations.

Commands that judge pods as a scheduler would use these settings, never those of the machine they run on.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from partage_base.daemon.settings import PREFIX
from partage_base.keyring import KeyFolders, load_public_keys
from partage_base.kube import ApiServer, Lease, NotAllowed, leases_path
from partage_base.version import VERSION
from partage_cli.keys.objects import KEYS, public_of
from partage_cli.keys.store import KeyStore
from partage_cli.nodes.reports import heartbeat
from partage_cli.tables import age, printable
from partage_plugins.api.names import KeyId
from partage_plugins.hooks import SCHEDULER_GROUP
from partage_plugins.registry.entry_points import TRACE_VARIABLE, installed
from partage_plugins.registry.registry import Registry
from partage_scheduler.published import Published, of_lease
from partage_scheduler.settings import SchedulerSettings

_AT_A_TIME: Final = 1000
_USUAL: Final = SchedulerSettings().scheduler_name
_LATE_S: Final = 60.0
"""Longer than a Lease lasts plus the usual clock skew."""


@dataclass(frozen=True, kw_only=True)
class KnownScheduler:
    """One scheduler, with the settings that it published."""

    said: Published
    notes: tuple[str, ...] = ()
    """What is unknown about it, one line each."""

    def settings(self, root: Path, namespace: str) -> SchedulerSettings:
        return SchedulerSettings(
            root=root,
            namespace=namespace,
            scheduler_name=self.said.scheduler_name,
            claims=self.said.claims,
            score_weights=self.said.score_weights if set(self.said.plugins) <= _installed() else (),
            silent_after_s=self.said.silent_after_s,
            longest_grace_s=self.said.longest_grace_s,
        )

    @contextmanager
    def plugins(self) -> Generator[Registry]:
        """The scheduler's plugins; during this context they see its variables and none of the caller's."""
        from partage_scheduler.core import plugins  # noqa: PLC0415 - it needs numpy, which the doctor does without

        callers = [name for name in os.environ if name.startswith(PREFIX) and name != TRACE_VARIABLE]
        kept = {name: os.environ.pop(name) for name in callers}
        os.environ.update(self.said.variables)
        try:
            yield plugins(self.said.plugins or None)
        finally:
            for name in self.said.variables:
                os.environ.pop(name, None)
            os.environ.update(kept)


async def told(server: ApiServer, namespace: str, named: str = "") -> KnownScheduler:
    """The scheduler of that name, or the first one. Raises `KubeError`."""
    found = await all_told(server, namespace)
    return next((each for each in found if each.said.scheduler_name == named), found[0])


async def all_told(server: ApiServer, namespace: str) -> Sequence[KnownScheduler]:
    """All schedulers with published settings, the default name first; else one with defaults. Raises `KubeError`."""
    listed = await server.list(leases_path(namespace), Lease, limit=_AT_A_TIME)
    if found := known_schedulers(listed.items):
        return found
    note = f"no scheduler says in namespace {namespace} how it decides: this goes by the defaults"
    return [KnownScheduler(said=Published(by=""), notes=(note,))]


def known_schedulers(leases: Iterable[Lease]) -> Sequence[KnownScheduler]:
    """The schedulers that published settings on their Leases, the default name first."""
    found = [(lease, said) for lease in leases if (said := of_lease(lease)) is not None]
    found.sort(key=lambda each: (each[1].scheduler_name != _USUAL, each[1].scheduler_name))
    return [KnownScheduler(said=said, notes=tuple(_doubts(lease, said))) for lease, said in found]


def _doubts(lease: Lease, said: Published) -> Iterator[str]:
    beat = heartbeat(lease, datetime.now(UTC))
    if beat is None or beat.age_s > _LATE_S:
        when = "has never led" if beat is None else f"was last heard of {age(beat.age_s)} ago"
        yield f"{said.scheduler_name} {when}: as long as it does not run, no pod is placed"
    if said.version != VERSION:
        yield f"{said.scheduler_name} is partage {printable(said.version)}, and this is {VERSION}"
    if missing := sorted(set(said.plugins) - _installed()):
        names = printable(", ".join(missing))
        yield f"{said.scheduler_name} has plugins that are not installed here, and are left out: {names}"


async def trusted_keys(server: ApiServer, namespace: str, root: Path) -> Mapping[KeyId, Ed25519PublicKey]:
    """The cluster's public keys for schedulers and nodes; those below `root` if the cluster has none."""
    try:
        config_map = await KeyStore(server, namespace).config_map(KEYS)
    except NotAllowed:
        config_map = None
    found = {} if config_map is None else public_of(config_map)
    return found or load_public_keys(KeyFolders.at_root(root).public).keys


def _installed() -> frozenset[str]:
    return frozenset(each.name for each in installed(SCHEDULER_GROUP))
