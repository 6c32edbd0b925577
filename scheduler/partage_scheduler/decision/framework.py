"""Protocol with the part of `partage_plugins.framework.SchedulerFramework` that the core calls.

The framework itself watches plugins with a clock; the protocol keeps this package free of that.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from partage_plugins.answers import Flags, Scores, Slots
from partage_plugins.api import Allocation, ContainerName, Inventory, Kind, NodeName, PodRequest, Resources, Slot
from partage_plugins.api.reasons import Reason


class FilterStatus(Protocol):
    @property
    def fits(self) -> Flags: ...

    def reasons(self) -> tuple[NDArray[np.uint16], tuple[Reason, ...]]:
        """For each slot where it does not fit, the index of the reason in the table."""
        ...


class Framework(Protocol):
    def shape(self, request: PodRequest) -> Hashable:
        """A key that is equal for requests with equal fits and scores."""
        ...

    def node_added(self, slot: Slot, node: NodeName, inventory: Inventory) -> None: ...

    def node_removed(self, slot: Slot) -> None: ...

    def node_room(self, slot: Slot, total: Resources, free: Resources) -> None: ...

    def fits(self, request: PodRequest, slots: Slots) -> FilterStatus: ...

    def scores(self, request: PodRequest, slots: Slots) -> Scores:
        """How good each of these nodes is; finite, higher is better."""
        ...

    def allocate(self, request: PodRequest, slot: Slot) -> Mapping[ContainerName, Mapping[Kind, Any]]:
        """Raises `Refused` if it does not fit."""
        ...

    def take(self, slot: Slot, allocation: Allocation) -> None:
        """Counts an allocation that the record holds already."""
        ...

    def give_back(self, slot: Slot, allocation: Allocation) -> None:
        """Releases an allocation that the record no longer holds."""
        ...
