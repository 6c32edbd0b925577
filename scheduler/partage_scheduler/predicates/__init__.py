"""kube-scheduler's filters, evaluated for all nodes at once: where a pod can't run, whichever devices are free. Pure.

`predicates` is the entry point. `nodes` keeps node names and labels as arrays by slot; `node_terms` evaluates selectors
on them. One module for each family: `taints`, `selectors`, `ports`, `amounts`, `volumes` and `attachments` (over
`storage`), `spread` and `inter_pod_affinity` (over `affinity_terms`, a pod's terms about other pods; `pod_selectors`,
which pods a term selects; `label_sets` and `terms`, the pods on nodes; `topology_domains`, counts by topology domain).
Each is updated incrementally and answers with `FilteredNodes`. `preferences` scores nodes (also over `images`),
`unsupported` reports what this scheduler does not implement. `needs` computes a pod's resource requests as kubelet
does.
"""

from partage_scheduler.predicates.needs import needs, room_of
from partage_scheduler.predicates.predicates import Predicates

__all__ = ["Predicates", "needs", "room_of"]
