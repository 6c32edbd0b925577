"""Where a pod can't be, whatever devices are free: upstream's filters, for all nodes at once. Pure.

`predicates` is the door. `nodes` has what nodes are called and labelled as arrays by slot; `node_terms` asks them.
One module for each family: `taints`, `selectors`, `ports`, `amounts`, `volumes` and `attachments` (over `storage`),
`spread` and `nearness` (over `wishes`, what a pod says of others; `pod_selectors`, which pods that is about; `kinds`
and `terms`, the pods that are there; `places`, how many of them where). Each is told what changes and keeps count, and
answers with `Barred`. `preferences` says which nodes are better (over `images` too), `unsupported` what is not done
here. `needs` counts what a pod needs, as kubelet does.
"""

from partage_scheduler.predicates.needs import needs, room_of
from partage_scheduler.predicates.predicates import Predicates

__all__ = ["Predicates", "needs", "room_of"]
