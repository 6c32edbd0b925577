"""Names of the claims that a pod needs, and the nodes that allocated ones leave. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from partage_plugins.api import NodeName
from partage_plugins.api.reasons import Reason
from partage_plugins.errors import Refused
from partage_scheduler.decision import Decider, FilteredNodes
from partage_scheduler.objects import ApiPod

MOST_CLAIMS: Final = 32
"""Limit of claims per pod."""
PINNED: Final = Reason("claim-elsewhere", "node(s) didn't have the cards of claim {}", lasts=True)


class NotYet(Refused):
    """Something that the pod needs does not exist yet; the message is for its owner."""


def pinned(pins: Iterable[tuple[str, NodeName]], decider: Decider) -> Iterator[FilteredNodes]:
    """Filters out all nodes but those of claims that are allocated or assumed."""
    for claim, node in pins:
        yield FilteredNodes(PINNED.of(claim), ~decider.slots.flags((node,)))


def claims_of(pod: ApiPod) -> Mapping[str, str]:
    """Names of a pod's claims by their names in the pod; raises `NotYet` if one is still to be created."""
    uses = pod.spec.resource_claims
    if len(uses) > MOST_CLAIMS:
        raise Refused(f"the pod has {len(uses)} resource claims; this scheduler reads {MOST_CLAIMS} at most")
    made = {each.name: each for each in pod.status.resource_claim_statuses}
    found: dict[str, str] = {}
    for use in uses:
        if use.resource_claim_name:
            found[use.name] = use.resource_claim_name
        elif use.name not in made:
            template = use.resource_claim_template_name or ""
            raise NotYet(f'waiting for a resource claim to be made of template "{template}"')
        elif name := made[use.name].resource_claim_name:
            found[use.name] = name  # else none is needed
    return found
