"""Why a pod is not placed: the obstacles for each node and card, and which changes would make it fit. Pure data.

`cards` examines the cards of a node, `remedies` tries changes, `nodes` combines them; `report` is for pods in any
state. The message on the pod itself is made in `cycle`.
"""

from partage_scheduler.explanation.cards import CardReport
from partage_scheduler.explanation.nodes import Explained, NodeReport, explain
from partage_scheduler.explanation.remedies import Remedy
from partage_scheduler.explanation.report import Displaced, GivenCard, PodReport, stand

__all__ = ["CardReport", "Displaced", "Explained", "GivenCard", "NodeReport", "PodReport", "Remedy", "explain", "stand"]
