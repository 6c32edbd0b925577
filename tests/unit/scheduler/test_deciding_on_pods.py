"""From a pod to a decision: everything together, on real cards, real filters and the real dialect."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given as given_
from hypothesis import settings
from hypothesis import strategies as st

from partage_cli.simulation.policies import decider_with
from partage_plugins.api import GPU, Gang, Namespace, PodUid
from partage_plugins.errors import PluginBroken, PluginFailed
from partage_scheduler.cluster import Cluster, ClusterEvent
from partage_scheduler.cycle import Bind, Cycle, Unschedulable
from partage_scheduler.decision import FilteredNodes
from partage_scheduler.objects import ApiPod
from partage_scheduler.predicates import Predicates
from partage_scheduler.queue import Queue, Waiting
from support.extent import examples
from support.objects import node, on_nodes, pod
from unit.scheduler.cluster.cards import asks_of, carded
from unit.scheduler.cluster.stage import trusted

NONE: frozenset[ClusterEvent] = frozenset()
NOW = 0.0


class Stage:
    """A scheduler without its I/O."""

    def __init__(self, filters: Predicates | None = None, **nodes: int) -> None:
        self.decider, self.framework = decider_with("binpack")
        self.rules = Predicates()
        self.cluster = Cluster(
            self.decider, self.rules, trusted=partial(trusted, kind=GPU), asks=asks_of(self.framework)
        )
        self.cycle = Cycle(self.decider, self.framework.requests, self.cluster, filters or self.rules)
        for name, count in nodes.items():
            self.cluster.node(carded(name, *["ok"] * count, labels={"name": name}))
            self.cluster.heartbeat(name, NOW, NOW)

    def place(self, *pods: ApiPod, gang: Gang | None = None) -> list[str]:
        """The node of each pod, or the message."""
        verdicts = self.cycle.decide(Waiting(pods, gang), NOW)
        assert [each.pod for each in verdicts] == list(pods)
        return [each.decision.node if isinstance(each, Bind) else each.message for each in verdicts]

    def stays(self, pod: ApiPod) -> Unschedulable:
        (verdict,) = self.cycle.decide(Waiting((pod,)), NOW)
        assert isinstance(verdict, Unschedulable)
        return verdict


def test_a_pod_is_assumed_where_it_is_to_be_bound() -> None:
    stage = Stage(m=1, n=2)
    (verdict,) = stage.cycle.decide(Waiting((pod("a", milli=600, cpu="1"),)), NOW)
    assert isinstance(verdict, Bind)
    assert (verdict.decision.node, verdict.decision.allocation.pod) == ("m", "uid-a")
    assert verdict.decision.allocation.containers
    assert stage.place(pod("b", milli=600)) == ["n"]


def test_a_pod_without_devices_has_an_allocation_without_containers() -> None:
    stage = Stage(m=0)
    (verdict,) = stage.cycle.decide(Waiting((pod("a", cpu="1"),)), NOW)
    assert isinstance(verdict, Bind)
    assert not verdict.decision.allocation.containers


@pytest.mark.parametrize(
    ("waiting", "message"),
    [
        (pod("a", cpu="9"), "0/3 nodes are available: 3 Insufficient cpu."),
        (pod("a", memory="9Gi"), "0/3 nodes are available: 3 Insufficient memory."),
        (
            pod("a", milli=3000),
            "0/3 nodes are available: 1 node(s) had no cards, 2 node(s) had too few healthy cards to share.",
        ),
        (
            pod("a", nodeSelector={"name": "m"}, milli=2000),
            (
                "0/3 nodes are available: 1 node(s) had too few healthy cards to share, "
                "2 node(s) didn't match Pod's node affinity/selector."
            ),
        ),
        (
            pod("a", affinity=on_nodes("node01")),
            "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector: no node is named node01.",
        ),
        (
            pod("a", affinity=on_nodes("l", "node01"), milli=1),
            ("0/3 nodes are available: 1 node(s) had no cards, 2 node(s) didn't match Pod's node affinity/selector."),
        ),
        (
            pod("a", milli=1, annotations={"partage.dev/models": "H100"}),
            (
                "0/3 nodes are available: 1 node(s) had no cards, "
                "2 node(s) had no card of a model as asked for (there are T4)."
            ),
        ),
    ],
    ids=["cpu", "memory", "cards", "selector", "no such node", "one such node", "models"],
)
def test_why_a_pod_is_not_placed_is_said_in_upstream_s_grammar(waiting: ApiPod, message: str) -> None:
    assert Stage(l=0, m=1, n=2).stays(waiting).message == message


def test_nodes_that_take_no_part_are_counted_with_their_reason() -> None:
    stage = Stage(m=1)
    stage.cluster.node(node("n"))
    stage.cluster.node(carded("o", "ok"))
    assert stage.stays(pod("a", milli=2000)).message == (
        "0/3 nodes are available: 1 node(s) didn't say which devices they have, "
        "1 node(s) had no heartbeat of the advertiser, 1 node(s) had too few healthy cards to share."
    )


def test_nodes_that_lack_the_same_are_counted_together_whoever_holds_it_there() -> None:
    stage = Stage(m=0, n=0)
    assert stage.place(pod("a", cpu="8")) == ["m"]
    stage.cluster.pod(pod("promised", cpu="8", priority=5, nominated="n"))
    assert stage.stays(pod("b", cpu="8")).message == "0/2 nodes are available: 2 Insufficient cpu."


def test_without_nodes_upstream_s_words_are_used() -> None:
    assert Stage().stays(pod("a")).message == "no nodes available to schedule pods"


def test_what_is_full_is_said_to_be_and_what_is_freed_helps() -> None:
    stage = Stage(m=1)
    stage.place(pod("a", milli=700))
    stays = stage.stays(pod("b", milli=700))
    assert stays.message == "0/1 nodes are available: 1 Insufficient GPU share."
    assert stays.codes == {"gpu/share"}
    assert stays.cluster_events == {
        ClusterEvent.NODE,
        ClusterEvent.NAMESPACE,
        ClusterEvent.INVENTORY,
        ClusterEvent.FREED,
    }
    stage.cluster.pod_gone(PodUid("uid-a"))
    assert stage.place(pod("b", milli=700)) == ["m"]


@pytest.mark.parametrize(
    ("waiting", "cluster_events"),
    [
        (pod("a", cpu="9"), {ClusterEvent.FREED}),
        (pod("a", nodeSelector={"name": "none"}), NONE),
        (pod("a", milli=9000), {ClusterEvent.INVENTORY}),
        (
            pod(
                "a",
                affinity={
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": "name", "labelSelector": {"matchLabels": {"app": "x"}}}
                        ]
                    }
                },
            ),
            {ClusterEvent.FREED, ClusterEvent.POD},
        ),
    ],
    ids=["cpu", "selector", "cards", "affinity"],
)
def test_what_may_help(waiting: ApiPod, cluster_events: set[ClusterEvent]) -> None:
    assert Stage(m=1).stays(waiting).cluster_events == {ClusterEvent.NODE, ClusterEvent.NAMESPACE} | cluster_events


@pytest.mark.parametrize(
    "waiting",
    [
        pod("a", annotations={"partage.dev/afinity": "x"}),
        pod("a", milli=1500),
        pod("a", gang="train"),
    ],
    ids=["unknown key", "uneven", "gang"],
)
def test_what_is_written_wrongly_is_told_and_only_its_owner_can_help(waiting: ApiPod) -> None:
    stays = Stage(m=1).stays(waiting)
    assert "allowed: " in stays.message
    assert stays.cluster_events == NONE


def test_what_is_not_supported_keeps_a_pod_waiting() -> None:
    stays = Stage(m=1).stays(pod("a", resourceClaims=[{"name": "claim"}]))
    assert stays.message.startswith("0/1 nodes are available: pod has resource claims (DRA)")
    assert stays.message.endswith(".")


def test_a_gang_is_bound_all_or_none() -> None:
    stage, gang = Stage(m=1, n=1), Gang(Namespace("team"), "train", 3)
    three = [pod(f"a{number}", milli=900, gang="train", size=3) for number in range(3)]
    messages = stage.place(*three, gang=gang)
    assert messages[2] == "0/2 nodes are available: 2 Insufficient GPU share."
    assert messages[0] == f"gang train is bound all or none, and pod a2 fits nowhere: {messages[2]}"
    assert stage.cluster.placed_pods.placed_on(gang) == 0
    assert stage.place(pod("b", milli=1000), pod("c", milli=1000), gang=gang) == ["m", "n"]


def test_a_gang_that_lacks_pods_is_told_so() -> None:
    stage, gang = Stage(m=1), Gang(Namespace("team"), "train", 3)
    (stays,) = stage.cycle.decide(Waiting((pod("a"),), gang, lacking=2), NOW)
    assert isinstance(stays, Unschedulable)
    assert stays.message == "gang train is bound all or none: 2 of its 3 pods are not there yet."
    assert stays.cluster_events == NONE


class Strange(Predicates):
    """Filters that prefer one node, or fail."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error

    def barred(self, pod: ApiPod, end: int) -> list[FilteredNodes]:
        if self.error is not None:
            raise self.error
        return []


def test_an_error_of_a_plugin_costs_the_pod_a_rest_and_one_that_lost_count_ends_the_process() -> None:
    stays = Stage(Strange(PluginFailed("p", "fits", "raised")), m=1).stays(pod("a"))
    assert stays.message == "plugin p: fits: raised"
    assert stays.cluster_events == {ClusterEvent.TIME}
    with pytest.raises(PluginBroken):
        Stage(Strange(PluginBroken("p", "fits", "again")), m=1).stays(pod("a"))


def test_a_pod_goes_where_it_is_nominated_and_elsewhere_if_it_does_not_fit_there() -> None:
    stage = Stage(m=1, n=1)
    assert stage.place(pod("a", milli=600, nominated="n")) == ["n"]
    assert stage.place(pod("b", milli=600, nominated="n")) == ["m"]
    assert stage.place(pod("c", cpu="1", nominated="gone")) == ["m"]


def test_deciding_again_reads_what_was_read_and_is_right_for_another_pod_that_says_the_same() -> None:
    stage = Stage(m=4)
    pods = [pod(f"p{number}", milli=500, labels={"app": "x"}) for number in range(3)]
    verdicts = [stage.cycle.decide(Waiting((each,)), NOW)[0] for each in pods]
    assert [each.pod.uid for each in verdicts if isinstance(each, Bind)] == ["uid-p0", "uid-p1", "uid-p2"]
    other = pod("p9", milli=500, labels={"app": "x"}, annotations={"partage.dev/models": "H100"})
    assert isinstance(stage.cycle.decide(Waiting((other,)), NOW)[0], Unschedulable)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given_(
    rooms=st.integers(1, 4),
    sizes=st.lists(st.integers(1, 3), min_size=2, max_size=4),
    order=st.randoms(use_true_random=False),
)
def test_gangs_that_want_the_same_room_are_never_bound_in_part_and_all_that_fit_one_by_one_get_it(
    rooms: int, sizes: list[int], order: object
) -> None:
    """Each pod requests a whole card. Bound pods end; every pod that can be bound at all is bound in the end."""
    stage = Stage(m=rooms)
    queue = Queue(placed_on=stage.cluster.placed_pods.placed_on)
    gangs = [
        [pod(f"g{g}-{n}", milli=1000, gang=f"g{g}", size=size) for n in range(size)] for g, size in enumerate(sizes)
    ]
    pods = [each for gang in gangs for each in gang]
    order.shuffle(pods)  # type: ignore[attr-defined]
    for each in pods:
        queue.offer(each, NOW)
    done: set[str] = set()
    for turn in range(20):
        running: list[ApiPod] = []
        while (waiting := queue.next(NOW + 100 * turn)) is not None:
            verdicts = stage.cycle.decide(waiting, NOW)
            assert len({type(each) for each in verdicts}) == 1, "all or none"
            for verdict in verdicts:
                if isinstance(verdict, Bind):
                    queue.withdraw(verdict.pod.uid)
                    running.append(verdict.pod)
                else:
                    queue.failed(verdict.pod.uid, verdict.cluster_events, NOW + 100 * turn)
        for each in running:
            done.add(each.name)
            queue.happened(stage.cluster.pod_gone(each.uid), NOW + 100 * turn)
    assert done == {each.name for gang in gangs if len(gang) <= rooms for each in gang}
