"""What is known of the cluster, pure.

`cluster` has a method for everything that happens and answers for which pods it matters (`causes`). `fleet` are the
nodes and their devices, `readiness` says which of them take part in sharing; `seats` are pods on nodes, `verified` says
which allocation counts for each, `unknown` what counts of pods that have none or can't be read; `kept` and `promised`
are room for pods which wait, `refusals` are nodes that had none after all, `fullness` is how full the cluster is.
"""

from partage_scheduler.cluster.causes import NOTHING, Cause
from partage_scheduler.cluster.cluster import Cluster, ClusterSettings
from partage_scheduler.cluster.refusals import REFUSED
from partage_scheduler.cluster.unknown import Asks
from partage_scheduler.cluster.verified import Unknown

__all__ = ["NOTHING", "REFUSED", "Asks", "Cause", "Cluster", "ClusterSettings", "Unknown"]
