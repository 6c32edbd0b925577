"""Binding of a pod, the same in both modes: it is assumed on its node, signed, bound, and settled.

Its devices count as taken as soon as it is assumed. Once the outcome of its binding is certain, the pod is confirmed on
its node, or removed from it again and pods that wait for resources are retried.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from partage_plugins.errors import PartageError
from partage_scheduler.api.binder import Binder, Bound, Lost, Outcome
from partage_scheduler.api.claim_writer import ClaimWriter
from partage_scheduler.api.status import StatusWriter
from partage_scheduler.core import Core
from partage_scheduler.cycle import Bind
from partage_scheduler.objects import ApiPod
from partage_scheduler.signatures import Signed, Signer


class Bindings:
    def __init__(
        self,
        core: Core,
        signer: Signer,
        binder: Binder,
        status: StatusWriter,
        claims: ClaimWriter | None = None,
    ) -> None:
        """`claims` is given if this scheduler allocates claims."""
        self._claims = claims
        self._cluster, self._queue, self._pods = core.cluster, core.queue, core.event_handlers.pods
        self._signer, self._binder, self._status = signer, binder, status
        self._mirror = core.mirror

    def sign(self, binds: Sequence[Bind]) -> list[Signed]:
        """Signs the allocations of these pods. If one can't be written, all are undone and the error is raised."""
        try:
            allocated = [(bind.pod, bind.decision.allocation) for bind in binds]
            return [self._signer.sign(*each, self._mirror(*each) if each[1].containers else None) for each in allocated]
        except PartageError:
            for bind in binds:
                self._undo(bind)
            raise

    async def bind(self, bind: Bind, signed: Signed) -> Outcome:
        """Returns when the outcome is certain and settled."""
        await self._status.settled(bind.pod.uid)
        outcome: Outcome | None = None
        if bind.claims and self._claims is not None:  # kubelet rejects a pod whose claims are not reserved for it
            outcome = await self._claims.write(bind.pod, bind.claims)
        if outcome is None:
            outcome = await self._binder.bind(bind.pod, bind.decision.node, signed.annotations)
        if isinstance(outcome, Bound):
            self._cluster.confirmed(bind.pod.uid)
            self._pods.placed(bind.pod.uid)
        else:
            self._undo(bind)
        if isinstance(outcome, Lost):
            await self.let_go(bind.pod)
        return outcome

    async def let_go(self, pod: ApiPod) -> None:
        """Deallocates claims that only this pod was to use: it is gone, or no longer fits where they are."""
        if self._claims is not None:
            await self._claims.let_go(self._cluster.claims.needless(pod))

    def _undo(self, bind: Bind) -> None:
        self._queue.happened(self._cluster.undo(bind.pod.uid), time.monotonic())
