"""Every disagreement is described, and full agreement is stated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from partage_base.cri import ListedContainer
from partage_cli.audit import of_cards, of_node, of_pods, of_scheduler
from partage_cli.audit.observation import SeenCluster, SeenHere, seen_node, seen_pods
from partage_cli.doctor.findings import Finding, Severity
from partage_cli.doctor.local_node import Unseen
from partage_cli.simulation.policies import decider_with
from partage_isolation.wire.messages import BrokerReport, CardHeld, ContainerReport
from partage_plugins.api import (
    GPU,
    Allocation,
    BudgetName,
    BudgetUse,
    CardId,
    ContainerAllocation,
    ContainerKey,
    ContainerName,
    Namespace,
    Pod,
    PodName,
    PodRef,
    PodRequest,
    PodUid,
    SuspendedFor,
    grantee_of,
)
from partage_plugins.api.keys import ALLOCATION, BUDGET, CONTAINER, PREFIX, SIGNATURE
from partage_plugins.codecs import container_key, encode_allocation, encode_container, key_id, sign
from partage_scheduler.cluster import Asks, Unknown
from partage_scheduler.objects import ApiNode, ApiPod
from rig.client.binding import signed
from support.objects import allocation, grant, node, pod
from unit.scheduler.cluster.cards import carded, granted

PRIVATE = Ed25519PrivateKey.generate()
KEYS = {key_id(PRIVATE.public_key()): PRIVATE.public_key()}
OTHER = Ed25519PrivateKey.generate()


def read(pod: Pod) -> PodRequest:
    return decider_with("binpack")[1].requests(pod)


def asks(pod: ApiPod) -> Unknown | None:
    return Asks(read, (PREFIX,)).of(pod)


def allocated(
    name: str, milli: int = 500, place: int = 0, *, asks: int | None = None, key: Ed25519PrivateKey = PRIVATE
) -> ApiPod:
    """A pod on node m with part of one of its cards and a signed allocation."""
    notes = signed(granted(f"uid-{name}", "m", place, milli), key)
    return pod(name, node="m", milli=milli if asks is None else asks, annotations=notes)


def moving(name: str, gib: int) -> ApiPod:
    """A movable pod on node m with this much memory of its first card."""
    given = allocation(f"uid-{name}", "m", grant("m-0", 0, memory=gib << 30, movable=True))
    return pod(name, node="m", milli=1, annotations=signed(given, PRIVATE))


def cluster(
    *pods: ApiPod, nodes: Sequence[ApiNode] = (carded("m", "ok", "ok"),), age_s: float | None = 1.0
) -> SeenCluster:
    return SeenCluster(
        pods=tuple(seen_pods(pods, (GPU,), KEYS)),
        nodes={each.name: seen_node(each, (GPU,), age_s) for each in nodes},
        keys=KEYS,
    )


def wrong(findings: Iterable[Finding]) -> list[str]:
    return [each.found for each in findings if each.status in {Severity.WRONG, Severity.WARNING}]


def all_of(seen: SeenCluster) -> list[Finding]:
    return [
        *of_pods.signatures(seen),
        *of_pods.keys(seen),
        *of_pods.requests(seen, read, ours=()),
        *of_cards.nodes(seen),
        *of_cards.cards(seen),
    ]


def test_where_all_agree_each_check_says_so() -> None:
    found = all_of(cluster(allocated("a"), allocated("b", 500), pod("plain", node="m"), pod("waits", milli=900)))
    assert {each.status for each in found} == {Severity.OK}
    assert [each.check for each in found] == ["signatures", "keys", "requests", "nodes", "cards"]


def test_without_keys_signatures_are_not_said_to_be_good() -> None:
    seen = SeenCluster(pods=tuple(seen_pods([allocated("a")], (GPU,), {})), nodes={})
    assert [each.status for each in of_pods.signatures(seen)] == [Severity.UNKNOWN]


def test_which_keys_are_needed_is_said() -> None:
    spare = Ed25519PrivateKey.generate().public_key()
    seen = cluster(allocated("a"), allocated("b"))
    seen = SeenCluster(pods=seen.pods, nodes=seen.nodes, keys={**KEYS, key_id(spare): spare})
    assert {each.found for each in of_pods.keys(seen)} == {
        f"key {next(iter(KEYS))} is needed by 2 pods",
        f"key {key_id(spare)} is needed by no pod",
    }


def changed(name: str) -> ApiPod:
    one = allocated(name)
    notes = dict(one.metadata.annotations)
    notes[ALLOCATION] = notes[ALLOCATION].replace("500", "900")
    return replace(one, metadata=replace(one.metadata, annotations=notes))


def borrowed() -> ApiPod:
    return replace(allocated("a"), metadata=replace(allocated("a").metadata, uid="uid-other"))


@pytest.mark.parametrize(
    ("pods", "nodes", "words"),
    [
        ([changed("a")], None, "pod team/a: allocation: the signature of key"),
        ([allocated("a", key=OTHER)], None, "pod team/a: allocation: signed with key"),
        ([borrowed()], None, "pod team/a: allocation: it is that of pod uid-a on node m"),
        ([pod("a", node="m", milli=500)], None, "so it may count on every card of the node; it was bound by p"),
        ([allocated("a", 500, asks=300)], None, "container main asks for 300 milli of a card and has 500"),
        ([allocated("a", 500, asks=0)], None, "container main has 1 cards and asks for none"),
        ([allocated("a", 700), allocated("b", 700)], None, "card m-0 of node m, held by team/a, team/b: 1400 milli"),
        ([allocated("a", 500, 7)], None, "pod team/a holds card m-7 of node m, which is not there"),
        ([allocated("a")], [carded("m", "lost")], "pod team/a holds card m-0 of node m, which is lost"),
        ([allocated("a")], [], "node m, with 1 pods that hold cards, is gone"),
        ([allocated("a")], [node("m")], "node m, with 1 pods that hold cards, says of no cards"),
        ([allocated("a")], [node("m", "{}")], "node m, with 1 pods that hold cards, can't be understood: inventory"),
    ],
)  # fmt: skip
def test_every_disagreement_in_the_cluster_has_words(
    pods: list[ApiPod], nodes: list[ApiNode] | None, words: str
) -> None:
    found = wrong(all_of(cluster(*pods) if nodes is None else cluster(*pods, nodes=nodes)))
    assert [each for each in found if words in each], found


def test_a_node_that_is_not_heard_of_is_warned_of() -> None:
    assert wrong(of_cards.nodes(cluster(allocated("a"), age_s=300.0))) == [
        "node m, with 1 pods that hold cards, was last heard of 5m ago: what it says may be old"
    ]


def container(name: str, allocation: Allocation | None, *, running: bool = True) -> ListedContainer:
    """A container as listed by the runtime; without an allocation it lacks crishim's annotation."""
    notes = {}
    if allocation is not None:
        grants = {GPU.name: allocation.of(GPU)[ContainerName("main")]}
        key = container_key(PodUid(f"uid-{name}"), ContainerName("main"), 0)
        notes[CONTAINER] = encode_container(ContainerAllocation(key=key, gen=1, grants=grants))
    return ListedContainer(
        id="c" * 64,
        sandbox_id="s",
        name="main",
        pod_uid=f"uid-{name}",
        exited=not running,
        annotations=notes,
        running=running,
    )


def said_by(one: ApiNode) -> str:
    return one.metadata.annotations["partage.dev/inventory"]


def here(*containers: ListedContainer, told: Sequence[ContainerReport] = (), text: str | None = None) -> SeenHere:
    own = said_by(carded("m", "ok", "ok")) if text is None else text
    return SeenHere(
        name="m", inventory=own, containers=containers, broker=BrokerReport(broker="1", containers=tuple(told))
    )


def limits(name: str, memory_bytes: int) -> ContainerReport:
    key = container_key(PodUid(f"uid-{name}"), ContainerName("main"), 0)
    ref = PodRef(namespace=Namespace("team"), name=PodName(name), uid=PodUid(f"uid-{name}"))
    card = CardHeld(card=CardId("m-0"), granted_bytes=memory_bytes, limit_bytes=memory_bytes)
    return ContainerReport(key=ContainerKey(key), pod=ref, container=ContainerName("main"), gen=1, cards=(card,))


A = granted("uid-a", "m", 0, 500)
MEMORY = A.of(GPU)[ContainerName("main")][0].memory_bytes


def of_here(seen: SeenHere, whole: SeenCluster) -> list[Finding]:
    return [
        *of_node.inventory(seen, whole, (GPU,)),
        *of_node.runtime(seen, whole, (GPU,)),
        *of_node.broker(seen, whole, (GPU,)),
    ]


def test_where_the_node_agrees_each_check_says_so() -> None:
    found = of_here(here(container("a", A), told=[limits("a", MEMORY)]), cluster(allocated("a")))
    assert [(each.check, each.status) for each in found] == [
        ("inventory", Severity.OK),
        ("runtime", Severity.OK),
        ("broker", Severity.OK),
    ]


def test_a_pod_that_was_resized_agrees_with_its_newer_allocation_and_with_no_other() -> None:
    newer = replace(granted("uid-a", "m", 0, 900), gen=2)
    text = encode_allocation(newer)
    notes = {ALLOCATION: text, SIGNATURE: sign(text, PRIVATE)}
    seen, memory = cluster(pod("a", node="m", milli=500, annotations=notes)), newer.of(GPU)[ContainerName("main")]
    assert not wrong(all_of(seen))
    in_force = replace(limits("a", memory[0].memory_bytes), gen=2)
    assert not wrong(of_here(here(container("a", A), told=[in_force]), seen))
    (words,) = wrong(of_here(here(container("a", A), told=[replace(in_force, gen=3)]), seen))
    assert "for the broker" in words


def test_a_container_that_uses_a_budget_agrees_with_what_the_budget_was_granted() -> None:
    budget, main = BudgetName("pod"), ContainerName("main")
    uses = (BudgetUse(main, GPU.name, budget),)
    text = encode_allocation(replace(A, containers={grantee_of(budget): A.containers[main]}, uses=uses))
    notes = {ALLOCATION: text, SIGNATURE: sign(text, PRIVATE), BUDGET: "main: pod"}
    seen = cluster(pod("a", node="m", milli=500, annotations=notes))
    assert not wrong(all_of(seen))
    assert not wrong(of_here(here(container("a", A), told=[limits("a", MEMORY)]), seen))
    assert wrong(of_here(here(container("a", None)), seen))


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (lambda: here(text="{}"), "this node's own: inventory"),
        (lambda: here(text=said_by(carded("m", "lost"))), "is not what crishim is told"),
        (lambda: here(container("a", None)), "was allocated 1 cards, and runs without crishim's word"),
        (lambda: here(container("gone", A)), "runs with cards, and the API server has no such pod on this node"),
        (lambda: here(container("plain", A)), "runs with cards, and pod team/plain has no allocation"),
        (lambda: here(container("a", granted("uid-a", "m", 0, 900))), "runs with other cards, or other parts of them"),
        (lambda: here(container("a", A)), "has part of a card, and no limits"),
        (lambda: here(told=[limits("a", MEMORY)]), "limits for team/a main, which the runtime does not have"),
        (lambda: here(container("a", A), told=[limits("a", 7)]), f"7 bytes of card m-0 for the broker, {MEMORY} for"),
    ],
)  # fmt: skip
def test_every_disagreement_on_a_node_has_words(seen: Callable[[], SeenHere], words: str) -> None:
    found = wrong(of_here(seen(), cluster(allocated("a"), pod("plain", node="m"))))
    assert [each for each in found if words in each], found


def test_what_could_not_be_asked_is_said_and_is_not_wrong() -> None:
    nobody = Unseen(path=Path("/x"), why="no")
    found = of_here(SeenHere(name="m", inventory=nobody, containers=nobody, broker=nobody), cluster())
    assert {each.status for each in found} == {Severity.UNKNOWN}


def test_a_container_that_has_ended_holds_nothing() -> None:
    assert not wrong(of_here(here(container("gone", A, running=False)), cluster()))


def page(**said: float) -> str:
    """Metrics of a scheduler whose counts match the cluster with one pod."""
    ratios = {"allocated_share_ratio": 0.25, "allocated_memory_ratio": 0.25}
    figures = {"leads": 1, "in_flight_pods": 0, "cards": 2, **ratios, **said}
    lines = [f"partage_scheduler_{name} {value}" for name, value in figures.items()]
    return "\n".join(["# HELP x y", *lines, 'partage_scheduler_queue_pods{place="ready"} 3', ""])


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        (page(), Severity.OK, "it counts 2 cards"),
        (page(cards=3), Severity.WARNING, "cards is 3 for it, 2 by what stands on nodes and pods"),
        (
            page(allocated_share_ratio=0.5, in_flight_pods=4),
            Severity.WARNING,
            "0.25 by what stands on nodes and pods (4 b",
        ),
        (page(leads=0), Severity.UNKNOWN, "this one does not lead"),
        ("<html>", Severity.UNKNOWN, "no metrics of a scheduler"),
        (Unseen(Path("http:/x"), "refused"), Severity.UNKNOWN, "refused"),
    ],
)
def test_what_the_scheduler_counts_is_compared(text: str | Unseen, status: Severity, words: str) -> None:
    (found,) = of_scheduler.scheduler(text, cluster(allocated("a")), asks)
    assert (found.status, words in found.found) == (status, True), found


@pytest.mark.parametrize("one", [changed("a"), pod("a", node="m", milli=500)], ids=["forged", "off"])
def test_a_pod_without_a_good_allocation_counts_on_every_card_as_for_the_scheduler(one: ApiPod) -> None:
    said = page(allocated_share_ratio=0.5, allocated_memory_ratio=0.5)
    (found,) = of_scheduler.scheduler(said, cluster(one), asks)
    assert found.status == Severity.OK, found


def test_memory_that_moves_is_given_away_twice_only_beyond_what_the_operator_allows() -> None:
    roomy = [carded("m", "ok", beyond_gib=16)]
    pods = [moving(name, 12) for name in "abc"]
    assert wrong(of_cards.cards(cluster(*pods[:2], nodes=roomy))) == []
    assert wrong(of_cards.cards(cluster(*pods, nodes=roomy))) == [
        (
            "card m-0 of node m, held by team/a, team/b, team/c: more memory is promised than can be kept "
            "(card 16 GiB, beyond 16 GiB, promised 36 GiB, of which 1.5 GiB stay there, and a turn takes 11.5 GiB)"
        )
    ]
    assert wrong(of_cards.cards(cluster(*pods[:2]))) == [
        f"card m-0 of node m, held by team/a, team/b: {24 << 30} of its {16 << 30} bytes are given away"
    ]


def test_the_room_of_a_suspended_pod_may_be_given_to_another() -> None:
    both = [allocated("a", 700), allocated("b", 700)]
    assert len(wrong(of_cards.cards(cluster(*both)))) == 2
    suspended = replace(granted("uid-a", "m", 0, 700), gen=2, suspended=SuspendedFor(by=PodUid("uid-b"), at=0))
    text = encode_allocation(suspended)
    notes = {ALLOCATION: text, SIGNATURE: sign(text, PRIVATE)}
    assert wrong(of_cards.cards(cluster(pod("a", node="m", milli=700, annotations=notes), both[1]))) == []
