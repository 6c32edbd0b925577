"""All claims, and what allocated ones hold on their cards: by claim, regardless of the pods that use them.

An existing allocation counts, whoever wrote it; after a restart nothing else is known. Before an allocation is written,
the decision is assumed until it is seen or undone. Pure: it reports what is held to the decider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from partage_plugins.api import (
    GPU,
    Allocation,
    ContainerRequest,
    GpuGrant,
    Inventory,
    NodeName,
    PodUid,
)
from partage_plugins.api.names import claim_grantee, claim_of
from partage_plugins.api.reasons import Reason
from partage_plugins.errors import Refused
from partage_scheduler.claims.asks import asked_of
from partage_scheduler.claims.consumers import Consumers
from partage_scheduler.claims.holdings import Holdings
from partage_scheduler.claims.results import MOST_CONSUMERS, ClaimGrant, held_by, holding, node_of, nodes_of
from partage_scheduler.decision import Decider, Decision, FilteredNodes
from partage_scheduler.objects import ApiDeviceClass, ApiPod, ApiResourceClaim

MOST_CLAIMS: Final = 32
"""Limit of claims per pod."""
PINNED: Final = Reason("claim-elsewhere", "node(s) didn't have the cards of claim {}", lasts=True)


class NotYet(Refused):
    """Something that the pod needs does not exist yet; the message is for its owner."""


class ClaimBook:
    def __init__(self, decider: Decider, inventory: Callable[[NodeName], Inventory | None], *, ours: str) -> None:
        """`inventory` returns that of a known node; `ours` is our schedulerName, empty if others allocate claims."""
        self._ours, self._slots = ours, decider.slots
        self._classes: dict[str, ApiDeviceClass] = {}
        self._claims: dict[tuple[str, str], ApiResourceClaim] = {}
        self.holdings, self.consumers = Holdings(decider, inventory), Consumers()
        self._assumed: dict[str, tuple[PodUid, NodeName]] = {}
        """By claim: the pod that it was decided for, and the node."""

    def put_class(self, item: ApiDeviceClass) -> None:
        self._classes[item.name] = item

    def remove_class(self, item: ApiDeviceClass) -> None:
        self._classes.pop(item.name, None)

    def get(self, namespace: str, name: str) -> ApiResourceClaim | None:
        return self._claims.get((namespace, name))

    def put(self, claim: ApiResourceClaim) -> bool:
        """Takes a claim as it is now, never an older version; returns whether something was freed."""
        before = self._claims.get((claim.namespace, claim.name))
        is_freed = before is not None and before.uid != claim.uid and self.remove(before)
        self._claims[claim.namespace, claim.name] = claim
        if before is not None and (before.uid, before.status) == (claim.uid, claim.status):
            return False
        self.consumers.put(claim.uid, claim.consumers)
        if not claim.results and claim.uid in self._assumed:
            return False  # its allocation is about to be written
        self._assumed.pop(claim.uid, None)
        had = self.holdings.remove(claim.uid)
        for node in nodes_of(claim):
            self.holdings.put(claim.uid, node, partial(held_by, claim, node))
        return is_freed or (had and not claim.results)

    def remove(self, claim: ApiResourceClaim) -> bool:
        """Removes a claim; returns whether it held anything."""
        known = self._claims.get((claim.namespace, claim.name))
        if known is not None and known.uid == claim.uid:
            del self._claims[known.namespace, known.name]
        self.consumers.put(claim.uid, frozenset())
        self._assumed.pop(claim.uid, None)
        return self.holdings.remove(claim.uid)

    def asks(self, pod: ApiPod) -> tuple[ContainerRequest, ...]:
        """What is to be allocated for a pod. Raises `Refused`, and `NotYet` if something is still to be created."""
        found: list[ContainerRequest] = []
        for local, claim in self._needed(pod).items():
            if self._place(pod, claim) is None:
                for request, ask in asked_of(claim, self._classes).requests:
                    name = claim_grantee(local, request)
                    found.append(ContainerRequest(name=name, role="app", asks=((GPU.name, ask),)))
        return tuple(found)

    def barred(self, pod: ApiPod) -> list[FilteredNodes]:
        """All nodes but those of the pod's claims that are allocated or assumed; raises what `asks` raises."""
        placed = ((claim.name, self._place(pod, claim)) for claim in self._needed(pod).values())
        return [
            FilteredNodes(PINNED.of(name), ~self._slots.flags((node,))) for name, node in placed if node is not None
        ]

    def assume(self, pod: ApiPod, decision: Decision) -> tuple[ClaimGrant, ...]:
        """Counts what the pod's claims get from now on; returns what is to be written on each."""
        needed = self._needed(pod)
        given: dict[str, list[tuple[str, GpuGrant]]] = {}
        for grantee, grants in decision.grants.items():
            if (named := claim_of(grantee)) is not None:
                given.setdefault(named[0], []).extend((named[1], grant) for grant in grants[GPU.name])
        return tuple(
            self._granted(pod, claim, decision.node, tuple(given.get(local, ()))) for local, claim in needed.items()
        )

    def undo(self, pod: PodUid) -> bool:
        """Frees what was assumed for a pod and never written; returns whether there was anything."""
        mine = [uid for uid, (whose, _) in self._assumed.items() if whose == pod] if self._assumed else []
        for uid in mine:
            del self._assumed[uid]
            self.holdings.remove(uid)
        return bool(mine)

    def needless(self, pod: ApiPod) -> tuple[ApiResourceClaim, ...]:
        """Allocated claims that no other pod uses; once deallocated they can be allocated where this pod fits."""
        try:
            claims = self._needed(pod).values()
        except Refused:
            return ()
        return tuple(each for each in claims if each.results and each.consumers <= {pod.uid})

    def held(self, pod: ApiPod) -> list[tuple[str, Allocation]]:
        """What a pod's claims hold, by their names in the pod, whoever placed it."""
        try:
            names = claims_of(pod)
        except Refused:
            return []
        known = ((local, self._claims.get((pod.namespace, name))) for local, name in names.items())
        return [(local, each) for local, claim in known if claim is not None for each in self.holdings.of(claim.uid)]

    def ending_with(self, pod: PodUid) -> list[Allocation]:
        """What claims hold that only this pod uses."""
        return [each for uid in self.consumers.of_alone(pod) for each in self.holdings.of(uid)]

    def ending_on(self, node: NodeName) -> list[Allocation]:
        """What claims hold on a node whose pods are all gone: they are about to be deallocated."""
        over = (uid for uid in self.holdings.on(node) if self.consumers.is_over(uid))
        return [each for uid in over for each in self.holdings.of(uid) if each.node == node]

    def _needed(self, pod: ApiPod) -> dict[str, ApiResourceClaim]:
        """A pod's claims by their names in the pod; none for pods that others place."""
        if not pod.spec.resource_claims or pod.spec.scheduler_name != self._ours:
            return {}
        found: dict[str, ApiResourceClaim] = {}
        for local, name in claims_of(pod).items():
            claim = self._claims.get((pod.namespace, name))
            if claim is None:
                raise NotYet(f'resourceclaim "{name}" not found')
            found[local] = claim
        return found

    def _place(self, pod: ApiPod, claim: ApiResourceClaim) -> NodeName | None:
        """The node on which a claim is allocated, or assumed to be."""
        if (assumed := self._assumed.get(claim.uid)) is not None:
            return assumed[1]
        if claim.metadata.deletion_timestamp is not None:
            raise NotYet(f'resourceclaim "{claim.name}" is being deleted')
        if claim.status.allocation is None:
            return None
        node = node_of(claim)
        if node is None:
            raise Refused(
                f'resourceclaim "{claim.name}" was allocated by others, and not as devices of one of our nodes'
            )
        if len(claim.consumers) >= MOST_CONSUMERS and pod.uid not in claim.consumers:
            raise NotYet(f'resourceclaim "{claim.name}" is in use by {MOST_CONSUMERS} pods, the most that may use one')
        return node

    def _granted(
        self, pod: ApiPod, claim: ApiResourceClaim, node: NodeName, given: tuple[tuple[str, GpuGrant], ...]
    ) -> ClaimGrant:
        meta = claim.metadata
        if not given:
            return ClaimGrant(namespace=meta.namespace, name=meta.name, uid=meta.uid, node=node)
        held = holding(meta.uid, node, (grant for _, grant in given))
        self._assumed[meta.uid] = pod.uid, node
        self.holdings.put(meta.uid, node, lambda _part: held)
        config = asked_of(claim, self._classes).config
        return ClaimGrant(namespace=meta.namespace, name=meta.name, uid=meta.uid, node=node, given=given, config=config)


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
