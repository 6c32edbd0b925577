"""What a pod needs of its claims: what is to be allocated for it, and where those are that are allocated. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from partage_plugins.errors import Refused
from partage_plugins.vocabulary import NodeName
from partage_plugins.vocabulary.reasons import Reason
from partage_scheduler.decision import Barred, Decider
from partage_scheduler.objects import ApiPod

MOST_CLAIMS: Final = 32
"""Of one pod that are read."""
PINNED: Final = Reason("claim-elsewhere", "node(s) didn't have the cards of claim {}", lasts=True)


class NotYet(Refused):
    """Something that the pod needs is not there yet; in a sentence for its owner."""


def pinned(pins: Iterable[tuple[str, NodeName]], decider: Decider) -> Iterator[Barred]:
    """All nodes but those of claims that are allocated, or about to be."""
    for claim, node in pins:
        yield Barred(PINNED.of(claim), ~decider.slots.flags((node,)))


def claims_of(pod: ApiPod) -> Mapping[str, str]:
    """The names of its claims, by what the pod calls them; raises `NotYet` where one is still to be made."""
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
