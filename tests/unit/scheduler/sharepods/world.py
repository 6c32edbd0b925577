"""An in-memory API server with SharePods and pods, a scheduler and garbage collection, moved step by step.

Events are delivered later, in order, when the test says so. A call, or its answer, may be lost.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, cast

import msgspec

from partage_base.kube import ApiServer, Conflict, NotFound, Unreachable
from partage_plugins.api import GPU, Pod, PodRequest
from partage_plugins.api.keys import AFFINITY, ALLOCATION, CARDS, GPU_MILLI
from partage_plugins.codecs import encode_allocation
from partage_plugins.codecs.native import read_requests
from partage_plugins.framework.requests import pod_request
from partage_scheduler.sharepods.controller import Controller, EventRecorder
from partage_scheduler.sharepods.objects import GPUID, OwnedPod, SharePod
from partage_scheduler.sharepods.state import LONGEST_REST_S, State
from partage_scheduler.sharepods.step import Planner
from support.objects import allocation, grant

Json = dict[str, Any]
NAMESPACE = "team"
NODES = ("n1", "n2")
CARDS_EACH = 2
WHOLE = 1000


def a_share(name: str, milli: int = 0, *, gpuid: str = "", node: str = "", policy: str = "Always", **spec: Any) -> Json:
    limits = {GPU_MILLI: str(milli)} if milli else {}
    container = {"name": "main", "image": "x", "resources": {"limits": limits}}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": {GPUID: gpuid} if gpuid else {}},
        "spec": {"containers": [container], "restartPolicy": policy, **({"nodeName": node} if node else {}), **spec},
    }


def requests(pod: Pod) -> PodRequest:
    """The pod's requests in the native dialect."""
    return pod_request(pod, {(name, GPU.name): ask for name, ask in read_requests(pod).items()})


class World:
    def __init__(self) -> None:
        self.shares: dict[str, Json] = {}
        self.pods: dict[str, Json] = {}
        self.now = 0.0
        self.loses = ""
        """What the next call that changes something loses: `call`, `answer`, or nothing."""
        self.created: list[str] = []
        self._numbers = count(1)
        self._unheard: deque[Callable[[State], None]] = deque()
        self.begin()

    def begin(self) -> None:
        """Start a new controller, which lists everything."""
        names = (f"g{number:04}" for number in self._numbers)
        self._unheard.clear()
        self.scene = scene = State(lambda: next(names))
        scene.shares.listed([msgspec.convert(each, SharePod) for each in self.shares.values()])
        scene.pods.listed([msgspec.convert(each, OwnedPod) for each in self.pods.values()])
        self.controller = Controller(
            cast("ApiServer", self),
            scene,
            Planner(scene.cards, requests, scheduler="partage-scheduler"),
            EventRecorder(cast("ApiServer", self), instance="test"),
            may_act=lambda: True,
            within_s=1,
            clock=lambda: self.now,
        )

    def hear(self, number: int = 1) -> None:
        for _ in range(min(number, len(self._unheard))):
            self._unheard.popleft()(self.scene)

    async def settle(self) -> None:
        """Deliver all events, and do everything that can be done."""
        is_still = False
        while not is_still:
            is_still = not self._unheard
            self.hear(len(self._unheard))
            self.now += LONGEST_REST_S
            while await self.controller.work():
                is_still = False

    # Actions of users, the scheduler and kubelets.

    def apply(self, share: Json) -> None:
        if share["metadata"]["name"] not in self.shares:
            self._put(self.shares, share, is_new=True)

    def delete(self, name: str) -> None:
        """Delete the SharePod; its pod is collected later."""
        self._remove(self.shares, name)

    def end(self, name: str, phase: str) -> None:
        pod = copy.deepcopy(self.pods[name])
        pod["status"] = {**pod.get("status", {}), "phase": phase}
        self._put(self.pods, pod)

    def collect(self) -> None:
        """Delete the pods whose owners are gone."""
        uids = {share["metadata"]["uid"] for share in self.shares.values()}
        for name, pod in list(self.pods.items()):
            owners = pod["metadata"].get("ownerReferences", [])
            if owners and not {owner["uid"] for owner in owners} & uids:
                self._remove(self.pods, name)

    def remove_pod(self, name: str) -> None:
        self._remove(self.pods, name)

    def bind(self, name: str, choice: int) -> None:
        """Bind the pod where it fits; `choice` selects one of several cards."""
        pod = copy.deepcopy(self.pods[name])
        fitting = self._fitting(pod)
        if pod["spec"].get("nodeName") or not fitting:
            return
        node, card = fitting[choice % len(fitting)]
        given = allocation(pod["metadata"]["uid"], node, grant(card, _milli(pod)))
        pod["spec"]["nodeName"] = node
        pod["metadata"].setdefault("annotations", {})[ALLOCATION] = encode_allocation(given)
        self._put(self.pods, pod)

    def card(self, name: str) -> str:
        """The pod's card, or empty if it has none."""
        pod = self.pods.get(name, {})
        text = pod.get("metadata", {}).get("annotations", {}).get(ALLOCATION)
        return "" if text is None else str(msgspec.json.decode(text)["containers"]["main"]["gpu"][0]["card"])

    def lives(self, name: str) -> bool:
        """Whether the SharePod has a pod that has not ended; ended pods stay ended."""
        return name in self.pods and _lives(self.pods[name])

    def pairs(self) -> dict[tuple[str, str], set[str]]:
        """The cards of all live pods, by node and GPUID."""
        found: dict[tuple[str, str], set[str]] = {}
        for name, share in self.shares.items():
            gpuid = share["metadata"].get("annotations", {}).get(GPUID)
            pod = self.pods.get(name)
            if gpuid and pod and _lives(pod) and self.card(name) and _is_of(pod, share):
                found.setdefault((pod["spec"]["nodeName"], gpuid), set()).add(self.card(name))
        return found

    def _fitting(self, pod: Json) -> list[tuple[str, str]]:
        notes = pod["metadata"].get("annotations", {})
        terms = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
        nodes = (
            NODES
            if not terms
            else tuple(next(iter(terms.values()))["nodeSelectorTerms"][0]["matchFields"][0]["values"])
        )
        used: dict[str, int] = {}
        for name, other in self.pods.items():
            if self.card(name) and _lives(other):
                used[self.card(name)] = used.get(self.card(name), 0) + _milli(other)
        return [
            (node, card)
            for node in nodes
            for card in (f"GPU-{node}-{place}" for place in range(CARDS_EACH))
            if used.get(card, 0) + _milli(pod) <= WHOLE
            and notes.get(CARDS, card) == card
            and not (AFFINITY in notes and card in used)
        ]

    def _put(self, held: dict[str, Json], item: Json, *, is_new: bool = False) -> Json:
        item = copy.deepcopy(item)
        number = next(self._numbers)
        item["metadata"]["resourceVersion"] = str(number)
        if is_new:
            item["metadata"] |= {"uid": f"uid-{number}", "creationTimestamp": f"2026-01-01T00:00:{number:06}Z"}
        held[item["metadata"]["name"]] = item
        seen = copy.deepcopy(item)
        if held is self.shares:
            self._unheard.append(lambda scene: scene.shares.changed(msgspec.convert(seen, SharePod)))
        else:
            self._unheard.append(lambda scene: scene.pods.changed(msgspec.convert(seen, OwnedPod)))
        return item

    def _remove(self, held: dict[str, Json], name: str) -> None:
        gone = held.pop(name)
        if held is self.shares:
            self._unheard.append(lambda scene: scene.shares.gone(msgspec.convert(gone, SharePod)))
        else:
            self._unheard.append(lambda scene: scene.pods.gone(msgspec.convert(gone, OwnedPod)))

    # The calls of `ApiServer` that the controller uses.

    async def get(self, path: str, type_: type[Any]) -> Any:
        return msgspec.convert(self._at(self.pods, path), type_)

    async def create(self, path: str, body: Json, type_: type[Any], *, within_s: float = 0) -> Any:
        assert within_s
        if body["metadata"]["name"] in self.pods:
            raise Conflict(path, status=409, reason="AlreadyExists")
        return self._carried_out(path, lambda: self._made(body), type_)

    async def patch(self, path: str, body: Json, type_: type[Any]) -> Any:
        share = copy.deepcopy(self._current(path, body))
        share["metadata"].setdefault("annotations", {}).update(body["metadata"]["annotations"])
        share["spec"] |= body["spec"]
        return self._carried_out(path, lambda: self._put(self.shares, share), type_)

    async def replace(self, path: str, body: Json, type_: type[Any]) -> Any:
        share = {**self._current(path.removesuffix("/status"), body), "status": body["status"]}
        return self._carried_out(path, lambda: self._put(self.shares, share), type_)

    def _made(self, body: Json) -> Json:
        self.created.append(body["metadata"]["name"])
        return self._put(self.pods, {**body, "status": {"phase": "Pending"}}, is_new=True)

    def _carried_out(self, path: str, do: Callable[[], Json], type_: type[Any]) -> Any:
        loses, self.loses = self.loses, ""
        if loses == "call":
            raise Unreachable(path, "lost", may_be_done=True)
        done = do()
        if loses == "answer":
            raise Unreachable(path, "lost", may_be_done=True)
        return msgspec.convert(done, type_)

    def _current(self, path: str, body: Json) -> Json:
        share = self._at(self.shares, path)
        if body["metadata"]["resourceVersion"] != share["metadata"]["resourceVersion"]:
            raise Conflict(path, status=409)
        return share

    def _at(self, held: dict[str, Json], path: str) -> Json:
        name = path.rpartition("/")[2]
        if name not in held:
            raise NotFound(path, status=404)
        return held[name]


def _milli(pod: Json) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["limits"].get(GPU_MILLI, 0))


def _lives(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}


def _is_of(pod: Json, share: Json) -> bool:
    return any(owner["uid"] == share["metadata"]["uid"] for owner in pod["metadata"].get("ownerReferences", []))
