"""What the runtime keeps of a pod for the manager: an annotation of its sandbox, from which everything follows.

The manager has no files. After any restart it lists sandboxes and containers, reads the record of each, and goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from partage_cli.machine.pods.pod import Pod

ANNOTATION: Final = "machine.partage.dev/pod"
Restart = Literal["no", "on-failure", "always", "unless-stopped"]


class Past(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What must be known of earlier sandboxes of the pod, which are removed."""

    attempts: Mapping[str, int] = {}
    """Of each container, the number of its next attempt."""
    since: Mapping[str, int] = {}
    """The attempt with which each began when a person started the pod last: restarts are counted from there."""
    done: tuple[str, ...] = ()
    """Containers that have ended and are not started again."""


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    v: Literal[1] = 1
    pod: Pod
    """With its name."""
    restart: Restart = "no"
    most_restarts: Annotated[int, Meta(ge=0)] = 0
    """After a failure; 0: without end."""
    remove: bool = False
    """When it has ended."""
    created_ns: int
    past: Past = Past()
