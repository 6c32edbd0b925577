"""What is known of the cluster, pure.

`cluster` has a method for everything that happens and answers for whom it matters (`causes`). `fleet` are the nodes and
their devices, `readiness` says which of them take part in sharing; `seats` are pods on nodes, `verified` says which
allocation counts for each, `unknown` what counts of those that have none, `unread` are pods that can't be read;
`promised` is room that others keep for pods which wait, `versions` tells news from what comes late, `rules` is what
predicates are told.
"""

from partage_scheduler.cluster.causes import NOTHING, Cause
from partage_scheduler.cluster.cluster import Cluster, ClusterSettings
from partage_scheduler.cluster.rules import Rules
from partage_scheduler.cluster.seats import Unknown
from partage_scheduler.cluster.unknown import Asks

__all__ = ["NOTHING", "Asks", "Cause", "Cluster", "ClusterSettings", "Rules", "Unknown"]
