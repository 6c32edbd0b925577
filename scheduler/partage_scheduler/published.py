"""The leader's configuration as an annotation of its Lease, so that other tools evaluate pods as it does. Pure.

It is written in the same request that takes or renews the Lease, and names its author: it counts only while the author
holds the Lease.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from partage_base.daemon.settings import PREFIX, SERVICE_LINK, fields_of
from partage_base.kube import Lease
from partage_base.version import VERSION
from partage_plugins.api.keys import SCHEDULER
from partage_plugins.registry.entry_points import BLOCK_VARIABLE, TRACE_VARIABLE
from partage_plugins.registry.registry import Registry
from partage_scheduler.settings import SchedulerSettings

MOST_BYTES: Final = 64 << 10
DAEMON: Final = "scheduler"
_NAME: Final = re.compile(rf"{PREFIX}[A-Z0-9_]+", re.ASCII)


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration that decisions depend on. Readers ignore unknown fields."""

    v: int = 1
    by: str
    """Identity of the Lease's holder that wrote it."""
    version: str = ""
    scheduler_name: str = SchedulerSettings().scheduler_name
    claims: bool = False
    """Whether it allocates claims."""
    extends: bool = False
    """Whether kube-schedulers may use it as an extender."""
    score_weights: tuple[str, ...] = ()
    silent_after_s: float = SchedulerSettings().silent_after_s
    longest_grace_s: int = SchedulerSettings().longest_grace_s
    variables: Mapping[str, str] = {}
    """Environment variables that plugins read."""
    plugins: tuple[str, ...] = ()


def published(
    settings: SchedulerSettings, registry: Registry, environment: Mapping[str, str], identity: str
) -> dict[str, str]:
    """The annotation for the Lease that `identity` holds; none if it would be too large."""
    said = Published(
        by=identity,
        version=VERSION,
        scheduler_name=settings.scheduler_name,
        claims=settings.claims,
        extends=bool(settings.extender_address),
        score_weights=settings.score_weights,
        silent_after_s=settings.silent_after_s,
        longest_grace_s=settings.longest_grace_s,
        variables=plugin_variables(environment),
        plugins=tuple(registry.names),
    )
    text = msgspec.json.encode(said)
    return {SCHEDULER: text.decode()} if len(text) <= MOST_BYTES else {}


def plugin_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables with our prefix that are neither the daemon's own settings nor Service variables of the cluster."""
    own = {name for field in fields_of(SchedulerSettings).values() for name in field.variables(DAEMON)}
    own |= {BLOCK_VARIABLE, TRACE_VARIABLE}  # the list of plugins shows what they block
    return {
        name: text
        for name, text in sorted(environment.items())
        if _NAME.fullmatch(name) and name not in own and not SERVICE_LINK.search(name) and "\0" not in text
    }


def of_lease(lease: Lease) -> Published | None:
    """The holder's configuration; None if it is absent, by another author, or on a node's heartbeat Lease.

    A node may write only its own Lease, which is named after the node and held by that name.
    """
    try:
        said = msgspec.json.decode(lease.metadata.annotations.get(SCHEDULER, ""), type=Published)
    except (msgspec.DecodeError, RecursionError):
        return None
    name, holder = lease.metadata.name, lease.spec.holder_identity
    if said.by != holder or said.scheduler_name != name or holder == name:
        return None
    return replace(said, variables=plugin_variables(said.variables))
