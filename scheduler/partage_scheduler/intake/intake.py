"""A sink for each kind of objects that the scheduler follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from partage_plugins.vocabulary import PodUid
from partage_scheduler.cluster import Cause, Cluster
from partage_scheduler.intake.claims import ResourceClaimIntake
from partage_scheduler.intake.others import Causes, Clock, HeartbeatIntake, K, NodeIntake, ObjectIntake
from partage_scheduler.intake.pods import PodIntake
from partage_scheduler.predicates import Predicates
from partage_scheduler.preemption import Budgets
from partage_scheduler.queue import Queue

_NAMESPACE: Final = frozenset((Cause.NAMESPACE,))
_CLAIM: Final = frozenset((Cause.CLAIM,))
_VOLUME: Final = frozenset((Cause.VOLUME,))


class Intake:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        cluster: Cluster,
        predicates: Predicates,
        queue: Queue,
        *,
        ours: str,
        clock: Clock,
        wall_clock: Clock,
        let_go: Callable[[PodUid], None] = lambda _uid: None,
        budgets: Budgets | None = None,
    ) -> None:
        self.pods = PodIntake(cluster, queue, ours=ours, clock=clock, let_go=let_go)
        self.nodes = NodeIntake(cluster, queue, clock=clock)
        self.heartbeats = HeartbeatIntake(cluster, queue, clock=clock, wall_clock=wall_clock)

        def told(put: Callable[[K], None], remove: Callable[[K], None], causes: Causes = _VOLUME) -> ObjectIntake[K]:
            return ObjectIntake(put, remove, causes=causes, queue=queue, clock=clock)

        self.namespaces = told(
            predicates.put_namespace, lambda item: predicates.remove_namespace(item.name), _NAMESPACE
        )
        self.volumes = told(predicates.put_volume, lambda item: predicates.remove_volume(item.name))
        self.claims = told(predicates.put_claim, lambda item: predicates.remove_claim(item.namespace, item.name))
        self.classes = told(predicates.put_storage_class, lambda item: predicates.remove_storage_class(item.name))
        self.csi_nodes = told(predicates.put_csi_node, lambda item: predicates.remove_csi_node(item.name))
        self.resource_claims = ResourceClaimIntake(cluster, queue, clock=clock)
        self.device_classes = told(cluster.claims.put_class, cluster.claims.remove_class, _CLAIM)
        of_owners = budgets or Budgets()
        self.budgets = told(of_owners.put, lambda item: of_owners.remove(item.namespace, item.name), frozenset())
