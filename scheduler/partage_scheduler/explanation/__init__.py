"""Why a pod is where it is not: per node and card what is in the way, and what would make it fit. Pure data.

For a person who asks about one pod; the sentence on the pod itself is `wording`. `cards` looks at the cards of a node,
`helping` tries changes, `explaining` puts it together; `standing` is for pods in any state.
"""

from partage_scheduler.explanation.cards import CardStands
from partage_scheduler.explanation.nodes import Explained, NodeStands, explain
from partage_scheduler.explanation.remedies import Help
from partage_scheduler.explanation.report import Displaced, GivenCard, PodStands, stand

__all__ = ["CardStands", "Displaced", "Explained", "GivenCard", "Help", "NodeStands", "PodStands", "explain", "stand"]
