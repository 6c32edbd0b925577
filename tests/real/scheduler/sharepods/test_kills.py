"""SharePods come and go while their controller is killed repeatedly; in the end the state is consistent.

`make test-all` does this with more of them, and `make soak-rounds` with many.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress

import pytest

from partage_plugins.api import GPU
from partage_plugins.api.keys import ALLOCATION
from partage_plugins.codecs import decode_allocation
from partage_scheduler.objects.selectors import REQUIRED
from rig.client.cluster import Cluster
from rig.client.resources import PODS, Json
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import TEAM
from support.extent import is_all
from support.scheduler_process import SchedulerProcess
from support.sharepods import GPUID, SHAREPODS_PATH, Stage, a_sharepod, by_hand

pytestmark = pytest.mark.timeout(3600)
SHAREPODS = int(os.environ.get("TEST_SHAREPODS", "16" if is_all() else "8"))
KILLS = int(os.environ.get("TEST_KILLS", "2" if is_all() else "1"))
AUTO = tuple(f"a{number}" for number in range(-(-SHAREPODS // 8) + 1))
"""Nodes with room for all SharePods that are not placed by hand: two cards each."""
BY_HAND = tuple(f"h{number}" for number in range(SHAREPODS // 4))
ENDED = ("Succeeded", "Failed")
REQUESTS = ("0.1", "0.15", "0.2")
HOSTNAME = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(AUTO)}
THERE = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [HOSTNAME]}]}}}


class Users:
    def __init__(self, stage: Stage, chance: random.Random) -> None:
        self.stage, self._chance = stage, chance
        self._names = iter(f"s{number}" for number in range(100_000))
        self._by_hand: dict[str, str] = {}
        """Node by name."""
        self.there: list[str] = []

    def fill(self) -> None:
        """Create SharePods up to the target number; about every third one is placed by hand."""
        while len(self.there) < SHAREPODS:
            name, request = next(self._names), self._chance.choice(REQUESTS)
            policy = self._chance.choice(("Always", "Never"))
            if self._chance.random() < 1 / 3:
                taken = Counter(self._by_hand.values())
                node = self._by_hand[name] = min(BY_HAND, key=lambda each: (taken[each], each))
                self.stage.create(by_hand(name, request, node=node, gpuid="shared", restartPolicy=policy))
            else:
                self.stage.create(a_sharepod(name, request, restartPolicy=policy, affinity=THERE))
            self.there.append(name)

    def disturb(self) -> None:
        """Delete a fifth of them, end some pods, and delete others."""
        for name in self._chance.sample(self.there, SHAREPODS // 5):
            self.there.remove(name)
            self._by_hand.pop(name, None)
            self.stage.delete(name)
        for name in self._chance.sample(self.there, SHAREPODS // 8):
            pod = self.stage.pod(name)
            if pod is not None and pod.node and pod.phase not in ENDED:  # as kubelets do: once, on a node
                with suppress(Refused):  # it was deleted meanwhile
                    self.stage.ends(name, self._chance.choice(("Running", "Failed", "Succeeded")))
        for name in self._chance.sample(self.there, SHAREPODS // 8):
            with suppress(Refused):
                self.stage.cluster.api.delete(PODS.at(TEAM, name), {"gracePeriodSeconds": 0})


def test_whenever_the_controller_dies_each_sharepod_has_its_pod_and_no_pod_is_left(
    bare: Cluster, node: Callable[[str], None], scheduler: SchedulerProcess, controller: SchedulerProcess
) -> None:
    chance, stage = random.Random(1), Stage(bare)  # noqa: S311 - no secret
    for name in (*AUTO, *BY_HAND):
        node(name)
    users = Users(stage, chance)
    controller.start()
    for _ in range(KILLS):
        users.fill()
        stage.wait_somewhere(chance.choice(users.there))
        users.disturb()
        controller.kill()
        users.fill()
        controller.start()
    until("everything is as it must be", lambda: why_not_right(stage), 200)
    assert scheduler.is_running


def why_not_right(stage: Stage) -> str | None:
    api = stage.cluster.api
    shares = {each["metadata"]["name"]: each for each in api.list(SHAREPODS_PATH.at(TEAM))}
    pods = {each["metadata"]["name"]: each for each in api.list(PODS.at(TEAM))}
    if orphans := pods.keys() - shares.keys():
        return f"orphans: {sorted(orphans)}"
    wrong = [said for name, share in sorted(shares.items()) if (said := why_not_told(share, pods.get(name)))]
    if wrong:
        return f"{len(wrong)} are not as they must be: {wrong[0]}"
    cards = defaultdict[tuple[str, str], set[str]](set)
    for name, pod in pods.items():
        if pod["status"]["phase"] not in ENDED:
            gpuid = shares[name]["metadata"]["annotations"][GPUID]
            cards[pod["spec"]["nodeName"], gpuid].add(card_of(pod))
    apart = [pair for pair, each in cards.items() if len(each) > 1]
    return f"pairs on several cards: {apart}" if apart else None


def why_not_told(share: Json, pod: Json | None) -> str | None:
    name, status = share["metadata"]["name"], share.get("status", {})
    phase = status.get("PodStatus", {}).get("phase")
    if pod is None:
        has_ended = share["spec"].get("restartPolicy") == "Never" and phase in ENDED
        return None if has_ended else f"{name} has no pod"
    if pod["metadata"]["ownerReferences"][0]["uid"] != share["metadata"]["uid"]:
        return f"the pod {name} is of another"
    told = status.get("PodStatus"), status.get("BoundDeviceID", "")
    if told != (pod["status"], card_of(pod)):
        return f"{name} says {told}, and its pod {pod['status']} on {card_of(pod)}"
    is_marked = bool(card_of(pod)) and share["spec"].get("nodeName") == pod["spec"]["nodeName"]
    is_over = phase in ENDED  # maybe before it was marked
    return None if is_marked or is_over else f"{name} is not placed and marked: {pod['status']}"


def card_of(pod: Json) -> str:
    """Empty if none was assigned."""
    text = pod["metadata"].get("annotations", {}).get(ALLOCATION)
    if text is None:
        return ""
    (card,) = {str(grant.card) for grants in decode_allocation(text, [GPU]).of(GPU).values() for grant in grants}
    return card
