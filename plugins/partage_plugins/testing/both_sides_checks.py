"""Checks of a plugin with both sides: that they speak of the same kind, and that what one grants the other applies."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_plugins.codecs.signature import key_id, sign, verify
from partage_plugins.testing.check import Case, Check, hold
from partage_plugins.testing.granted import containers_of, placed_pods
from partage_plugins.testing.node_stage import NodeStage, host_of
from partage_plugins.testing.scheduler_stage import SchedulerStage


def both_sides_own_one_kind(case: Case) -> None:
    """Both sides declare the same kind: its name, and the fields of its three types."""
    scheduler, node = SchedulerStage(case).kind, NodeStage(case).kind
    hold(scheduler.name == node.name, f"the kinds are {scheduler.name} and {node.name}")
    for what in ("request", "grant", "part"):
        ours, theirs = _fields(getattr(scheduler, what)), _fields(getattr(node, what))
        hold(ours == theirs, f"the {what} of kind {node.name} has {ours} in the scheduler and {theirs} on the node")


def what_is_granted_is_applied(case: Case) -> None:
    """Allocated, encoded, signed, verified, decoded and adjusted by the plugin host: the container gets its grants."""
    private = Ed25519PrivateKey.generate()
    public = private.public_key()
    with host_of(case) as host:
        hold(case.subject.kind in host.started.kinds, "; ".join(host.started.faults) or "it owns no kind")
        for placed in placed_pods(case):
            verify(placed.allocation, sign(placed.allocation, private), {key_id(public): public})
            for each in containers_of(placed):
                adjusted = host.adjust(each.container, each.granted)
                hold(not adjusted.unenforced, f"partage_adjust does not enforce {dict(adjusted.unenforced)}")
                host.removed(each.container.key)


def _fields(what: Any) -> list[tuple[str, str, bool]]:  # noqa: ANN401  any kind's type
    return [(field.encode_name, str(field.type), field.required) for field in msgspec.structs.fields(what)]


CHECKS: Final[tuple[Check, ...]] = (both_sides_own_one_kind, what_is_granted_is_applied)
