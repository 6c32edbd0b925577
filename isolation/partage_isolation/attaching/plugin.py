"""The hooks: in crishim each container that owes others a limit is prepared by the broker, or refused.

Refusals are stable sentences without anything that changes from one try to the next: kubelet writes an event for each
new one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from partage_isolation.attaching.preparing import adjustment_of, question_for
from partage_isolation.control.client import BrokerClient
from partage_isolation.control.errors import BrokerAway, BrokerNonsense
from partage_plugins.errors import Refused
from partage_plugins.hooks import hookimpl
from partage_plugins.vocabulary.containers import Adjustment, Container, Granted
from partage_plugins.vocabulary.node import NodeContext

AWAY: Final = (
    "partage: no broker answers on this node, so the limits of this container would not hold; "
    "is partage-broker running there? kubelet tries again"
)
NONSENSE: Final = (
    "partage: this node's broker and its isolation plugin do not understand each other; "
    "restart partage-broker and partage-crishim from one version of partage. kubelet tries again"
)


class IsolationNode:
    """Puts containers under the broker's limits."""

    @hookimpl
    def partage_started(self, context: NodeContext) -> None:
        """Where the broker is to be found; it is not asked yet, since it may be started later."""
        self._broker = BrokerClient(Path(context.root))

    @hookimpl
    def partage_adjust(self, container: Container, granted: Granted) -> Adjustment | None:
        """The library, the broker's socket, and what they put in force."""
        question = question_for(container, granted)
        if question is None:
            return None
        try:
            return adjustment_of(self._broker.prepare(question))
        except BrokerAway as error:
            raise Refused(AWAY) from error
        except BrokerNonsense as error:
            raise Refused(NONSENSE) from error
