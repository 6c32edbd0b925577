"""What each pod requests, read with the settings of the scheduler that it names, or else of the first scheduler."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from partage_cli.audit.observation import SeenCluster, SeenPod
from partage_plugins.api import Pod, PodRequest, PodUid
from partage_plugins.errors import PartageError
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_plugins.rules.words import Lexicon, Spoken, resources_of
from partage_scheduler.core import lexicon_of
from partage_scheduler.objects import seen


class Reading(NamedTuple):
    request: PodRequest | PartageError
    spoken: tuple[Spoken, ...]
    unread: str | None
    """A sentence about the keys that no dialect reads, for a pod that is bound."""


class Readings:
    def __init__(self, schedulers: Sequence[str]) -> None:
        """`schedulers`: names; the first one also reads the pods of foreign schedulers."""
        self.schedulers = schedulers
        self._of_pods: dict[PodUid, Reading] = {}

    def add(self, cluster: SeenCluster, scheduler: str, framework: SchedulerFramework) -> None:
        """Read this scheduler's pods with the settings that its plugins have now."""
        lexicon, others = lexicon_of(framework), scheduler == self.schedulers[0]
        given = {name for each in cluster.nodes.values() for name in each.node.status.allocatable}
        for each in cluster.pods:
            names = each.pod.spec.scheduler_name
            if names == scheduler or (others and names not in self.schedulers):
                self._of_pods[each.pod.uid] = _reading(each, framework, lexicon, given)

    def of(self, each: SeenPod) -> Reading:
        return self._of_pods[each.pod.uid]

    def request(self, pod: Pod) -> PodRequest:
        """The pod's request; raises what its dialect raised."""
        found = self._of_pods[pod.ref.uid].request
        if isinstance(found, PartageError):
            raise found
        return found

    def is_ours(self, each: SeenPod) -> bool:
        return each.pod.spec.scheduler_name in self.schedulers


def _reading(each: SeenPod, framework: SchedulerFramework, lexicon: Lexicon, given: Collection[str]) -> Reading:
    """`given`: the extended resources that nodes offer."""
    pod = seen(each.pod)
    absent = () if each.pod.node else [name for name in resources_of(pod) if name not in given]
    spoken = tuple(lexicon.spoken(pod, absent=absent))
    try:
        request = framework.requests(pod)
    except PartageError as error:
        return Reading(error, spoken, None)
    unread = lexicon.in_vain(pod, asks=bool(request.asking)) if each.pod.node else None
    return Reading(request, spoken, unread)
