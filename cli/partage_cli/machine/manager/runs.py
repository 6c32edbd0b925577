"""A pod from the question to its first breath: read, its images fetched, placed, then handed to the task of its life.

Until it is handed over, whoever asked may go, and nothing of it is left. From then on it goes its way.
"""

from __future__ import annotations

import time
from pathlib import Path

from partage_cli.machine.manager.admission import Admission
from partage_cli.machine.manager.cri_engine import require_possible
from partage_cli.machine.manager.errors import Objection
from partage_cli.machine.manager.managed import ManagedPod
from partage_cli.machine.manager.pods import Pods
from partage_cli.machine.manager.server import Say
from partage_cli.machine.manager.store import Store
from partage_cli.machine.pods.pod import PULLS, Container, Pod, PullPolicy
from partage_cli.machine.pods.record import Record
from partage_cli.machine.wire.messages import Progress, Run
from partage_oci.stock import Stock
from partage_plugins.errors import DecodeError, Refused
from partage_plugins.vocabulary import Allocation, PodRequest, PodUid


class Runs:
    def __init__(self, pods: Pods, admission: Admission, store: Store, stock: Stock, root: Path) -> None:
        self._pods, self._admission, self._store, self._stock, self._root = pods, admission, store, stock, root

    async def run(self, question: Run, say: Say) -> ManagedPod:
        """Returns once its containers were started. Raises `Objection`; then nothing of it is left."""
        pod, uid = self._pods.reserve(question.pod)
        try:
            try:
                require_possible(pod, self._root)
            except (Refused, DecodeError) as error:
                raise Objection("bad-question", str(error)) from None
            allocation = await self._place(pod, uid, question, say)
            record = Record(
                pod=pod,
                restart=question.restart,
                most_restarts=question.most_restarts,
                remove=question.remove,
                created_ns=time.time_ns(),
            )
            managed = self._pods.add(uid, record)
        finally:
            self._pods.give_up(uid)
        began = managed.begin(allocation)
        await say(Progress(step="start"))
        await began
        return managed

    async def start(self, managed: ManagedPod, say: Say) -> None:
        """One that has ended, once more."""
        if not managed.is_at_rest or managed.will == "remove":
            raise Objection("name-taken", f"pod {managed.name} has not ended; `partage stop {managed.name}` ends it")
        pod = managed.record.pod
        request = self._request(pod, managed.uid)
        for container in _containers(pod):
            await self._fetch(
                container.image, say, "Never" if container.image_pull_policy == "Never" else "IfNotPresent"
            )
        if managed.is_gone or not managed.is_at_rest:
            raise Objection("name-taken", f"pod {managed.name} was started or removed by another meanwhile")
        self._pods.require_ports(pod)
        began = managed.begin(self._admission.now(request))
        await say(Progress(step="start"))
        await began

    def _request(self, pod: Pod, uid: PodUid) -> PodRequest:
        request = self._admission.request(pod, uid)
        why = self._stock.refresh()
        if why and request.containers:
            raise Objection("not-ready", f"which cards there are is not known: {why}")
        return request

    async def _place(self, pod: Pod, uid: PodUid, question: Run, say: Say) -> Allocation:
        request = self._request(pod, uid)
        self._admission.require_possible(request, waits=question.wait)
        for container in _containers(pod):
            policy = PULLS[question.pull] if question.pull else container.image_pull_policy
            await self._fetch(container.image, say, policy)
        return await self._turn(request, say) if question.wait else self._admission.now(request)

    async def _turn(self, request: PodRequest, say: Say) -> Allocation:
        waiting = self._admission.why_waits(request)
        if waiting:
            await say(Progress(step="queue", text=waiting))
        return await self._admission.turn(request)

    async def _fetch(self, image: str, say: Say, policy: PullPolicy) -> None:
        if policy != "Always" and await self._store.has(image):
            return
        if policy == "Never":
            raise Objection("image", f"image {image} is not in the store, and it is not to be pulled; load or pull it")
        await self._store.pull(image, say)


def _containers(pod: Pod) -> tuple[Container, ...]:
    """One for each image, and each way to fetch it."""
    every = (*pod.spec.init_containers, *pod.spec.containers)
    return tuple({(each.image, each.image_pull_policy): each for each in every}.values())
