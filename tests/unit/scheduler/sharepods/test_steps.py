"""The next step for one SharePod, and the pod that is created from it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from partage_plugins.api import Pod, PodRequest
from partage_plugins.api.keys import AFFINITY, ALLOCATION, CARDS
from partage_plugins.errors import PluginFailed
from partage_scheduler.objects.selectors import REQUIRED
from partage_scheduler.sharepods.cards import CardBook
from partage_scheduler.sharepods.manifest import SCHED_AFFINITY
from partage_scheduler.sharepods.objects import GPUID, MOST_BYTES, OURS, OwnedPod, SharePod
from partage_scheduler.sharepods.step import Create, Halt, Leave, Planner, Step, taken
from unit.scheduler.sharepods.world import a_share, requests

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def read(body: dict[str, Any], **meta: Any) -> SharePod:
    body["metadata"] |= {"uid": "uid-1", **meta}
    return msgspec.convert(body, SharePod)


def following(share: SharePod, pod: OwnedPod | None = None) -> Step:
    return Planner(CardBook(lambda: "drawn"), requests, scheduler="ours").next(share, pod)


def made(share: SharePod) -> Any:
    step = following(share)
    assert isinstance(step, Create), step
    return step.pod


def node_terms(pod: Any) -> Any:
    return pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


HERE = {"key": "metadata.name", "operator": "In", "values": ["n1"]}


def test_a_pod_is_its_sharepods_spec_placed_by_us() -> None:
    notes = {"kubeshare/gpu_mem": "1", LAST_APPLIED: "{}"}
    share = read(a_share("p", 500, hostname="h"), annotations=notes, labels={"app": "x"})
    pod = made(share)
    assert pod["spec"] == {**share.spec, "schedulerName": "ours"}
    assert pod["metadata"]["labels"] == {"app": "x", OURS: "true"}
    assert pod["metadata"]["annotations"] == {"kubeshare/gpu_mem": "1"}


def test_a_node_becomes_an_affinity_so_that_a_scheduler_gives_the_card() -> None:
    pod = made(read(a_share("p", 500, node="n1", gpuid="abcde")))
    assert "nodeName" not in pod["spec"]
    assert node_terms(pod) == [{"matchFields": [HERE]}]


def test_the_node_holds_for_each_alternative_that_the_user_wrote_and_for_no_empty_one() -> None:
    terms: list[Any] = [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}, {}]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}, "podAffinity": {}}
    pod = made(read(a_share("p", 500, node="n1", gpuid="abcde", affinity=affinity)))
    assert node_terms(pod) == [{**terms[0], "matchFields": [HERE]}, {}]
    assert pod["spec"]["affinity"]["podAffinity"] == {}


def test_the_first_pod_of_a_pair_has_a_tag_that_no_other_has() -> None:
    notes = made(read(a_share("p", 500, node="n1", gpuid="abcde")))["metadata"]["annotations"]
    assert notes == {AFFINITY: "sharepod-uid-1", SCHED_AFFINITY: "sharepod-uid-1"}
    assert GPUID not in notes
    assert CARDS not in notes


@pytest.mark.parametrize(
    ("share", "key"),
    [
        (a_share("p", 500, node="n1"), GPUID),
        (a_share("p", 500, gpuid="abcde"), "spec.nodeName"),
        (a_share("p", node="n1", gpuid="abcde"), "kubeshare/gpu_limit"),
        (a_share("p", 500, node="n1", gpuid="a\nb"), GPUID),
        (a_share("p", 500, node="n1", gpuid="a" * 64), GPUID),
        ({"metadata": {"name": "p"}, "spec": {"containers": "none"}}, "spec"),
        ({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}], "affinity": {"nodeAffinity": 5}}}, "spec"),
        ({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}], "nodeName": []}}, "spec"),
    ],
)
def test_what_is_wrong_is_said_by_its_key(share: dict[str, Any], key: str) -> None:
    step = following(read(share))
    assert isinstance(step, Halt)
    assert (step.reason, step.is_wrong) == ("ErrValueError", True)
    assert step.message.startswith(f"Value error: {key} ")


def test_a_sharepod_without_a_card_may_name_its_node() -> None:
    assert node_terms(made(read(a_share("p", node="n1")))) == [{"matchFields": [HERE]}]


def test_one_that_says_too_much_is_refused_and_not_kept_in_memory() -> None:
    share = read(a_share("p", 500, node="n1", gpuid="abcde", hostname="h" * MOST_BYTES))
    assert (share.node, share.gpuid, len(str(share.spec)) < 100) == ("n1", "abcde", True)
    step = following(share)
    assert isinstance(step, Halt)
    assert f"allowed: at most {MOST_BYTES}" in step.message


def test_of_a_pod_that_says_too_much_its_card_is_known() -> None:
    owner = {"apiVersion": "v1", "kind": "SharePod", "name": "p", "uid": "uid-1", "controller": True}
    notes = {ALLOCATION: "{}", "big": "x" * MOST_BYTES}
    meta = {"name": "p", "uid": "u", "labels": {OURS: "true"}, "annotations": notes}
    assert msgspec.convert({"metadata": meta}, OwnedPod).metadata.annotations == {}
    owned = msgspec.convert({"metadata": {**meta, "ownerReferences": [owner]}}, OwnedPod)
    assert (owned.metadata.annotations, owned.metadata.labels) == ({ALLOCATION: "{}"}, {OURS: "true"})


def test_a_plugin_that_fails_costs_this_sharepod_alone() -> None:
    def broken(_pod: Pod) -> PodRequest:
        raise PluginFailed("dialect", "partage_requests", "raised KeyError", "secret")

    step = Planner(CardBook(lambda: "drawn"), broken, scheduler="ours").next(read(a_share("p")), None)
    assert isinstance(step, Halt)
    assert step.message == "plugin dialect can't read it: raised KeyError"


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
@pytest.mark.parametrize("phase", ["Running", "Failed", "Succeeded"])
def test_another_pod_comes_as_the_restart_policy_says(policy: str, phase: str) -> None:
    ended = {"Running": (), "Failed": ("Never",), "Succeeded": ("Never", "OnFailure")}[phase]
    share = read({**a_share("p", policy=policy), "status": {"PodStatus": {"phase": phase}}})
    assert isinstance(following(share), Leave if policy in ended else Create)


def test_one_that_is_about_to_go_gets_no_pod() -> None:
    assert isinstance(following(read(a_share("p"), deletionTimestamp="2026-01-01T00:00:00Z")), Leave)


def test_a_pod_of_a_former_sharepod_of_the_name_is_waited_for_and_of_another_owner_is_told() -> None:
    def owned(kind: str) -> OwnedPod:
        owner = {"apiVersion": "v1", "kind": kind, "name": "p", "uid": "old", "controller": True}
        return msgspec.convert({"metadata": {"name": "p", "uid": "u", "ownerReferences": [owner]}}, OwnedPod)

    share = read(a_share("p"))
    assert taken(share, owned("SharePod")).is_wrong is False
    assert taken(share, owned("Job")).message == 'Resource "p" already exists and is not managed by SharePod'
