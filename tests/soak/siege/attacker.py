"""A user with the role `edit` in one namespace, who does what that allows to harm others, in random order.

The API server must accept or must refuse each act of such a user. An act is done when the server accepted what it may
accept, or refused what it must refuse; accepting what it must refuse is wrong.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from partage_base.kube import ApiServer, KubeError, MalformedResponse, NotAllowed, pod_path, pod_status_path, pods_path
from partage_plugins.api.keys import (
    ALLOCATION,
    CARDS,
    EXCLUSION,
    GANG,
    GANG_SIZE,
    GPU_MILLI,
    LIMIT_MILLI,
    SIGNATURE,
)
from partage_scheduler.objects import ApiPod
from rig.client.manifests import a_pod
from rig.identity.people import TEAM
from soak.siege.places import ARENA, CROWDED, HOST, REAL, only_on
from soak.siege.verdicts import Verdict, Wrong

OURS: Final = "partage-scheduler"
QUOTA: Final = {
    "pods": "250",
    f"requests.{GPU_MILLI}": "90000",
    "requests.cpu": "200",
}
"""The quota of the whole namespace: more than a team of that size has."""
HUGE_BYTES: Final = 1_400_000
NAMES: Final = 10_000
LABELS: Final = 30_000
EXPRESSIONS: Final = 8_000
LONG_GRACE_S: Final = 315_360_000
LINGERING: Final = 8
FLOOD: Final = 60
TIDIED: Final = 0.7
CROWDING_MILLI: Final = "240"
ALLOWED_EXPRESSIONS: Final = 400
ALLOWED_TERMS: Final = 32
"""Terms of one pod: as many as the scheduler reads."""
DEPTH: Final = 2_000
"""Depth of nested objects; the API server accepts five times as many."""
TEXTS: Final = 20
TEXT_BYTES: Final = 250_000
"""Nearly all that annotations may have."""
WORDS: Final = ("nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores")
"""HAMi's resources, which the scheduler reads here."""
_NESTED: Final = {
    "manager": "nests",
    "operation": "Update",
    "apiVersion": "v1",
    "fieldsType": "FieldsV1",
    "fieldsV1": msgspec.Raw(b'{"f:metadata":' + b'{"f:a":' * DEPTH + b"{}" + b"}" * DEPTH + b"}"),
}
_FORGED: Final = '{"v":1,"gen":9,"crit":[],"pod":"x","node":"n0000","containers":{"main":{"gpu":[]}}}'
_STRIPPED: Final = {ALLOCATION: None, SIGNATURE: None}
_WAIT: Final = {
    "names": Verdict.EXCESS,
    "labels": Verdict.EXCESS,
    "terms": Verdict.EXCESS,
    "carries": Verdict.EXCESS,
    "texts": Verdict.EXCESS,
    "excludes": Verdict.EXCLUSION,
}
"""Pods that must never be on a node, by their names' prefixes, and the verdict if they are."""


class Attacker:
    """The user. `server` is the API server with that user's access; nobody else requests the `cards` by name."""

    def __init__(self, server: ApiServer, chance: random.Random, cards: list[str]) -> None:
        self._server, self._chance, self._cards = server, chance, cards
        self._number = self._crowd = 0
        self._bound: dict[str, ApiPod] = {}
        self._taken: dict[str, str] = {}
        self._acts: Mapping[str, Callable[[], Awaitable[bool]]] = {
            "strip": self._strip,
            "forge": self._forge,
            "choose a node": self._choose_node,
            "choose a node by HAMi's words": self._choose_by_words,
            "nest": self._nest,
            "long texts": self._write_texts,
            "whole cards": self._take_whole,
            "huge pod": self._make_huge,
            "names of resources": self._name_resources,
            "names of labels": self._name_labels,
            "terms": self._make_terms,
            "many labels": self._carry_labels,
            "linger": self._linger,
            "exclusion": self._exclude,
            "gang": self._begin_gang,
            "flood": self._flood,
            "tidy": self._tidy,
        }
        self.done = Counter[str]()
        self.times: list[tuple[float, float, str]] = []
        """When each act began and ended."""
        self.full = 0
        """How often the quota or the server's own limits prevented everything."""
        self.nested: set[str] = set()
        """Names of pods whose managed fields are deep."""
        self.displaced = 0
        """How many lingering pods were evicted."""
        self._accepted = Counter[str]()
        self._placed = Counter[str]()

    async def act(self, rate: float) -> None:
        """Round after round of all acts in random order, at most this many a second, until cancelled."""
        begins = time.monotonic()
        while True:
            for name in self._chance.sample(list(self._acts), len(self._acts)):
                await asyncio.sleep(max(0.0, begins - time.monotonic()))
                await self._try(name)
                begins = max(time.monotonic(), begins + self._chance.expovariate(rate))

    async def _try(self, name: str) -> None:
        began = time.monotonic()
        try:
            self.done[name] += await self._acts[name]()
        except KubeError:
            self.full += 1
        self.times.append((began, time.monotonic(), name))

    @property
    def undone(self) -> list[str]:
        return [name for name in self._acts if not self.done[name]]

    def wrong(self) -> Iterator[Wrong]:
        for act, count in self._accepted.items():
            yield Wrong(Verdict.REFUSED, f"{count} times the user could {act}")
        for what, count in self._placed.items():
            yield Wrong(_WAIT[what], f"{count} pods are placed that must wait: {what}")

    def bound(self, pod: ApiPod) -> None:
        self._bound[pod.name] = pod
        what = _what(pod)
        self._placed.update([what] if what in _WAIT else [])

    def gone(self, pod: ApiPod) -> None:
        if self._bound.pop(pod.name, None) is not None and _what(pod) == "lingers":
            self.displaced += 1

    async def _strip(self) -> bool:
        """If that succeeds, request the card that the pod still has."""
        pod = self._some("whole")
        if pod is None or not await self._could("strip", pod, _STRIPPED):
            return pod is not None
        return await self._take(self._taken[pod.name])

    async def _forge(self) -> bool:
        pod = self._some()
        if pod is not None:
            await self._could("forge", pod, {ALLOCATION: self._chance.choice((_FORGED, "", "{"))})
        return pod is not None

    async def _could(self, what: str, pod: ApiPod, annotations: Mapping[str, str | None]) -> bool:
        path = self._chance.choice((pod_path, pod_status_path))(TEAM, pod.name)
        how: Literal["merge", "strategic"] = "merge" if self._chance.random() < 0.5 else "strategic"
        try:
            await self._server.patch(path, {"metadata": {"annotations": annotations}}, msgspec.Raw, how=how)
        except NotAllowed:
            return False
        self._accepted[what] += 1
        return True

    async def _choose_node(self) -> bool:
        try:
            await self._create("chooses", node="n0001")
        except NotAllowed:
            return True
        self._accepted["choose a node past the scheduler"] += 1
        return True

    async def _choose_by_words(self) -> bool:
        word = self._chance.choice(WORDS)
        try:
            await self._create("words", node="n0002", limits={word: "1"})
        except NotAllowed:
            return True
        self._accepted[f"choose a node past the scheduler by {word}"] += 1
        return True

    async def _nest(self) -> bool:
        """A pod that holds a part of a card; those on real nodes are also read by others' clients."""
        there = [pod for pod in self._bound.values() if pod.node not in REAL]
        if not there:
            return False
        pod = self._chance.choice(there)
        body = {"metadata": {"managedFields": [_NESTED]}}
        try:
            found = await self._server.patch(pod_path(TEAM, pod.name), body, msgspec.Raw)
        except MalformedResponse:  # the server accepted it, and it can't be decoded
            kept = True
        else:
            kept = b'"nests"' in bytes(found)
        self.nested.add(pod.name)
        return kept

    async def _write_texts(self) -> bool:
        """Each has another text, and is deleted after it was read; a quota of one pod is enough for that."""
        names: list[str] = []
        for _ in range(TEXTS):
            text = f"{self._number}".ljust(TEXT_BYTES, "x")
            await self._create("texts", annotations={LIMIT_MILLI: text})
            names.append(f"texts-{self._number}")
            if len(names) > 1:
                await self._server.delete(pod_path(TEAM, names[-2]), grace_s=0)
        await self._server.delete(pod_path(TEAM, names[-1]), grace_s=0)
        return True

    async def _take_whole(self) -> bool:
        return await self._take(self._chance.choice(self._cards))

    async def _take(self, card: str) -> bool:
        self._taken[f"whole-{self._number + 1}"] = card
        return await self._create("whole", limits={GPU_MILLI: "1000"}, annotations={CARDS: card})

    async def _make_huge(self) -> bool:
        """The API server writes each of these letters as six bytes."""
        return await self._create("huge", args=["<" * HUGE_BYTES], scheduler=self._chance.choice((OURS, "nobody")))

    async def _name_resources(self) -> bool:
        names = {f"r{self._number}.example/{number}": "1" for number in range(NAMES)}
        return await self._create("names", limits={GPU_MILLI: "1", **names})

    async def _name_labels(self) -> bool:
        expressions = [
            {"key": f"l{self._number}-{number}", "operator": "DoesNotExist"} for number in range(EXPRESSIONS)
        ]
        terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        return await self._create("labels", spec=_affinity("nodeAffinity", terms))

    async def _make_terms(self) -> bool:
        terms = [
            {"topologyKey": f"t{self._number}-{number % 50}", "labelSelector": {"matchLabels": {"a": f"{number}"}}}
            for number in range(EXPRESSIONS // 2)
        ]
        return await self._create("terms", spec=_affinity("podAntiAffinity", terms))

    async def _carry_labels(self) -> bool:
        return await self._create("carries", labels={f"c{self._number}-{number}": "x" for number in range(LABELS)})

    async def _linger(self) -> bool:
        """Fill the arena with pods that have a grace period of ten years and are then deleted."""
        there = [pod for pod in self._bound.values() if _what(pod) == "lingers"]
        spec = {"terminationGracePeriodSeconds": LONG_GRACE_S, **only_on(ARENA)}
        for _ in range(LINGERING - len(there)):
            await self._create("lingers", limits={GPU_MILLI: "1000"}, spec=spec)
        for pod in there:
            await self._server.delete(pod_path(TEAM, pod.name))
        return bool(there)

    async def _exclude(self) -> bool:
        tag = {EXCLUSION: f"e{self._chance.randrange(1000)}"}
        return await self._create("excludes", limits={GPU_MILLI: "1"}, annotations=tag)

    async def _begin_gang(self) -> bool:
        gang = {GANG: f"g{self._number}", GANG_SIZE: "100"}
        for _ in range(3):
            await self._create("gang", limits={GPU_MILLI: "1000"}, annotations=gang)
        return True

    async def _flood(self) -> bool:
        """Small pods for a node with too little room for all: pending ones are reconsidered whenever a pod leaves."""
        made = [self._create("flood", limits={GPU_MILLI: CROWDING_MILLI}, spec=self._crowding()) for _ in range(FLOOD)]
        found = await asyncio.gather(*made, return_exceptions=True)
        if any(isinstance(each, BaseException) for each in found):
            self.full += 1
        return True in found

    def _crowding(self) -> dict[str, Any]:
        """The spec of a pod that is as slow to decide on as possible."""
        self._crowd += 1
        expressions = [
            {"key": f"f{self._crowd}-{number}", "operator": "DoesNotExist"} for number in range(ALLOWED_EXPRESSIONS)
        ]
        terms = [
            {"topologyKey": HOST, "labelSelector": {"matchLabels": {f"g{self._crowd}": f"{number}"}}}
            for number in range(ALLOWED_TERMS)
        ]
        said = only_on(CROWDED, expressions=expressions)
        said["affinity"] |= _affinity("podAntiAffinity", terms)["affinity"]
        return said

    async def _tidy(self) -> bool:
        """Make room in its quota, and on the crowded node: all pods that wait for it are reconsidered at once."""
        pods = (await self._server.list(pods_path(TEAM), ApiPod)).items
        crowding = [pod for pod in pods if _what(pod) == "flood" and pod.node]
        rest = [pod for pod in pods if _what(pod) in _TIDIED and self._chance.random() < TIDIED]
        deleted = [self._server.delete(pod_path(TEAM, pod.name), grace_s=0) for pod in (*crowding, *rest)]
        await asyncio.gather(*deleted, return_exceptions=True)
        return bool(deleted)

    def _some(self, what: str = "") -> ApiPod | None:
        pods = [pod for pod in self._bound.values() if what in {"", _what(pod)}]
        return self._chance.choice(pods) if pods else None

    async def _create(self, what: str, **said: Any) -> bool:
        self._number += 1
        fields: dict[str, Any] = {"scheduler": OURS, "requests": {"cpu": "1m"}, "limits": {GPU_MILLI: "1"}, **said}
        await self._server.create(pods_path(TEAM), a_pod(f"{what}-{self._number}", **fields), msgspec.Raw)
        return True


_TIDIED: Final = {*_WAIT, "whole", "huge", "chooses", "gang"}


def _what(pod: ApiPod) -> str:
    return pod.name.rpartition("-")[0]


def _affinity(kind: str, required: object) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": required}}}
