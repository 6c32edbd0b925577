"""Cache of the cluster's state. Pure.

`cluster` has a method for each change and returns the cluster events that follow from it (`cluster_events`). `fleet`
has the nodes and their devices, `readiness` which of them take part in sharing; `placed_pods` are pods on nodes,
`verified` has the allocation that counts for each, `unknown` what counts for pods that have none or can't be decoded;
`kept` and `promised` are resources held for pending pods, `refusals` are nodes whose kubelet rejected a pod, `fullness`
is how full the cluster is.
"""

from partage_scheduler.cluster.cluster import Cluster, ClusterSettings
from partage_scheduler.cluster.cluster_events import NOTHING, ClusterEvent
from partage_scheduler.cluster.refusals import REFUSED
from partage_scheduler.cluster.unknown import Asks
from partage_scheduler.cluster.verified import Unknown

__all__ = ["NOTHING", "REFUSED", "Asks", "Cluster", "ClusterEvent", "ClusterSettings", "Unknown"]
