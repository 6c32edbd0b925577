"""The way of a pod to its node, the same in both modes: assumed there, signed, bound, and settled.

From when it is assumed its devices count as taken. Once it is certain what became of its binding, it is confirmed on
its node, or taken off again and pods that wait for room are tried.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from partage_plugins.errors import PartageError
from partage_plugins.vocabulary import Allocation
from partage_scheduler.api.binder import Binder, Bound, Outcome
from partage_scheduler.api.status import StatusWriter
from partage_scheduler.core import Core
from partage_scheduler.cycle import Bind
from partage_scheduler.decision import Decision
from partage_scheduler.objects import ApiPod
from partage_scheduler.signatures import Signed, Signer


class Bindings:
    def __init__(
        self,
        core: Core,
        signer: Signer,
        binder: Binder,
        status: StatusWriter,
    ) -> None:
        self._cluster, self._queue, self._pods = core.cluster, core.queue, core.intake.pods
        self._signer, self._binder, self._status = signer, binder, status
        self._mirror = core.mirror

    def assume(self, pod: ApiPod, decision: Decision) -> Bind:
        """It counts on its node from now on, so that no other decision gives the same away."""
        self._cluster.assume(pod, decision)
        return Bind(pod, decision, decision.allocation())

    def sign(self, binds: Sequence[Bind]) -> list[Signed]:
        """What is written on each. Where one can't be written, all are undone, and the error is raised."""
        try:
            return [self._signed(bind.pod, bind.allocation) for bind in binds]
        except PartageError:
            for bind in binds:
                self._undo(bind)
            raise

    async def bind(self, bind: Bind, signed: Signed) -> Outcome:
        """Returns when the outcome is certain and settled."""
        await self._status.settled(bind.pod.uid)
        outcome = await self._binder.bind(bind.pod, bind.decision.node, signed.annotations)
        if isinstance(outcome, Bound):
            self._cluster.confirmed(bind.pod.uid)
            self._pods.placed(bind.pod.uid)
        else:
            self._undo(bind)
        return outcome

    def _signed(self, pod: ApiPod, allocation: Allocation) -> Signed:
        beside = self._mirror(pod, allocation) if allocation.containers else None
        return self._signer.sign(pod, allocation, beside)

    def _undo(self, bind: Bind) -> None:
        self._queue.happened(self._cluster.undo(bind.pod.uid), time.monotonic())
