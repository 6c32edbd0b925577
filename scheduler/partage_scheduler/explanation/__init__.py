"""Why a pod is not placed: per node and card what is in the way, and what would make it fit. Pure data.

`cards` looks at the cards of a node, `remedies` tries changes, `nodes` puts it together; `report` is for pods in any
state. The sentence on the pod itself is made in `cycle`.
"""

from partage_scheduler.explanation.cards import CardReport
from partage_scheduler.explanation.nodes import Explained, NodeReport, explain
from partage_scheduler.explanation.remedies import Help
from partage_scheduler.explanation.report import Displaced, GivenCard, PodReport, stand

__all__ = ["CardReport", "Displaced", "Explained", "GivenCard", "Help", "NodeReport", "PodReport", "explain", "stand"]
