"""What a scheduler that leads says of itself on its Lease, so that others see pods as it does. Pure.

It is written in the same request as the lead itself, and names who wrote it: what stands on a Lease that somebody else
holds is not believed.
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
from partage_plugins.registry.entry_points import BLOCK_VARIABLE, TRACE_VARIABLE
from partage_plugins.registry.registry import Registry
from partage_plugins.vocabulary.keys import SCHEDULER
from partage_scheduler.settings import SchedulerSettings

MOST_BYTES: Final = 64 << 10
DAEMON: Final = "scheduler"
_NAME: Final = re.compile(rf"{PREFIX}[A-Z0-9_]+", re.ASCII)


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """What decisions depend on. Readers ignore what they do not know."""

    v: int = 1
    by: str
    """The holder of the Lease who wrote it."""
    version: str = ""
    scheduler_name: str = SchedulerSettings().scheduler_name
    claims: bool = False
    """Whether it allocates claims."""
    extends: bool = False
    """Whether kube-schedulers may ask it."""
    score_weights: tuple[str, ...] = ()
    silent_after_s: float = SchedulerSettings().silent_after_s
    longest_grace_s: int = SchedulerSettings().longest_grace_s
    variables: Mapping[str, str] = {}
    """Of its environment, those that plugins read."""
    plugins: tuple[str, ...] = ()


def published(
    settings: SchedulerSettings, registry: Registry, environment: Mapping[str, str], identity: str
) -> dict[str, str]:
    """As an annotation of the Lease that `identity` holds; none where it would be too large."""
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
    """Those of ours that are no settings of the daemon's own, and not made by the cluster; nothing else by any name."""
    own = {name for field in fields_of(SchedulerSettings).values() for name in field.variables(DAEMON)}
    own |= {BLOCK_VARIABLE, TRACE_VARIABLE}  # what they block is seen by which plugins there are
    return {
        name: text
        for name, text in sorted(environment.items())
        if _NAME.fullmatch(name) and name not in own and not SERVICE_LINK.search(name) and "\0" not in text
    }


def of_lease(lease: Lease) -> Published | None:
    """What the holder says; None where it says nothing, another one wrote it, or it is a node's heartbeat.

    A node may write its own Lease alone, which has its name and is held by that name.
    """
    try:
        said = msgspec.json.decode(lease.metadata.annotations.get(SCHEDULER, ""), type=Published)
    except (msgspec.DecodeError, RecursionError):
        return None
    name, holder = lease.metadata.name, lease.spec.holder_identity
    if said.by != holder or said.scheduler_name != name or holder == name:
        return None
    return replace(said, variables=plugin_variables(said.variables))
