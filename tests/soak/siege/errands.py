"""Pods to delete at some later time."""

from __future__ import annotations

import asyncio

from partage_base.kube import ApiServer, Conflict, KubeError, NotFound, pod_path
from partage_scheduler.objects import ApiPod


class Errands:
    """Pending deletions; each is retried until it is done."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._tasks: set[asyncio.Task[None]] = set()

    def delete(self, pod: ApiPod, *, after_s: float) -> None:
        """That very pod, without a grace; nothing if it is gone by then."""
        task = asyncio.create_task(self._delete(pod, after_s))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _delete(self, pod: ApiPod, after_s: float) -> None:
        await asyncio.sleep(after_s)
        while True:
            try:
                await self._server.delete(pod_path(pod.namespace, pod.name), uid=pod.uid, grace_s=0)
            except (NotFound, Conflict):
                return
            except KubeError:
                await asyncio.sleep(0.1)
            else:
                return
