"""Writes another allocation on a pod that is on a node: of another size, or one that suspends or resumes it.

A write names the version of the pod that it changes, so it takes effect at most once.
"""

from __future__ import annotations

import asyncio
import time

from partage_base.kube import ApiServer, Backoff, KubeError, NotFound, pod_path
from partage_base.kube.errors import ServerFailed, StatusError
from partage_plugins.api import Allocation
from partage_plugins.errors import PartageError
from partage_scheduler.api.binder import BEYOND_S, FIRST_AGAIN_S, MOST_AGAIN_S
from partage_scheduler.authority import Authority
from partage_scheduler.core import Core
from partage_scheduler.metrics import Figures
from partage_scheduler.objects import ApiPod
from partage_scheduler.signatures import Signed, Signer


class AllocationWriter:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        server: ApiServer,
        core: Core,
        signer: Signer,
        *,
        authority: Authority,
        figures: Figures,
        within_s: float,
    ) -> None:
        self._server, self._core, self._signer = server, core, signer
        self._authority, self._figures, self._within_s = authority, figures, within_s

    async def write(self, pod: ApiPod, allocation: Allocation) -> str | None:
        """Writes the allocation and updates the cache; returns None, or why the write never takes effect."""
        try:
            return await self._written(pod, self._signer.sign(pod, allocation))
        except PartageError as error:  # its own annotations stand in the way
            return str(error)

    async def _written(self, pod: ApiPod, signed: Signed) -> str | None:
        path, version = pod_path(pod.namespace, pod.name), pod.metadata.resource_version
        body = {"metadata": {"uid": pod.uid, "resourceVersion": version, "annotations": signed.annotations}}
        backoff = Backoff(first_s=FIRST_AGAIN_S, most_s=MOST_AGAIN_S)
        doubt_until = 0.0
        while self._authority.may_bind():
            try:
                self._core.event_handlers.pods.changed(
                    await self._server.patch(path, body, ApiPod, within_s=self._within_s)
                )
            except NotFound:
                return "it is gone"
            except KubeError as error:
                self._figures.erred(error)
                is_no = isinstance(error, StatusError) and not isinstance(error, ServerFailed)
                if not is_no:
                    doubt_until = time.monotonic() + self._within_s + BEYOND_S
                await asyncio.sleep(0 if is_no and not doubt_until else backoff.after(error))
                is_sure = is_no and time.monotonic() >= doubt_until
                found = await self._seen(pod)
                if found is None:
                    continue
                if signed.annotations.items() <= found.metadata.annotations.items():
                    return None
                if is_sure or found.metadata.resource_version != version:
                    return str(error)
            else:
                return None
        return "another scheduler leads now"

    async def _seen(self, pod: ApiPod) -> ApiPod | None:
        """Fetches the pod and updates the cache; None if the request failed or the pod is gone."""
        try:
            found = await self._server.get(pod_path(pod.namespace, pod.name), ApiPod)
        except KubeError as error:  # fetched again, or the next write shows it
            self._figures.erred(error)
            return None
        self._core.event_handlers.pods.changed(found)
        return found
