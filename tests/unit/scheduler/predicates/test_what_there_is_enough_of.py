"""Resources other than CPU and memory, pod slots, host ports; and a pod's needs as kubelet counts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from partage_plugins.api import Resources
from partage_scheduler.predicates import needs
from partage_scheduler.predicates.needs import MOST, asked_by
from support.objects import node, pod
from unit.scheduler.placing import World

Json = Mapping[str, Any]
GIB = 1 << 30


def test_a_node_that_does_not_say_how_many_pods_it_takes_takes_none() -> None:
    assert World(node("n", pods="0")).why(pod("p")) == {"n": "Too many pods"}


def test_a_resource_that_no_node_has_is_lacking_everywhere_unless_nothing_of_it_is_asked_for() -> None:
    world = World(node("n"))
    assert world.why(pod("p", requests={"example.com/fpga": "1"})) == {"n": "Insufficient example.com/fpga"}
    assert world.where(pod("p", requests={"example.com/fpga": "0"})) == "n"


def test_what_plugins_hand_out_is_no_resource_of_the_node() -> None:
    assert World(node("n")).where(pod("p", requests={"partage.dev/gpu-milli": "500"})) == "n"


def test_of_what_another_plugin_hands_out_the_very_name_counts() -> None:
    world = World(ours=("fpga.example.com/boards",))
    world.put(node("n"))
    assert world.where(pod("p", requests={"fpga.example.com/boards": "1"})) == "n"
    assert world.where(pod("p", requests={"fpga.example.com/boards-2": "1"})) == ""


def test_a_node_in_the_slot_of_another_begins_with_nothing_on_it() -> None:
    world = World(node("n", pods="1"))
    world.on("n", pod("a"))
    world.remove("n")
    world.put(node("m", pods="1"))
    assert world.where(pod("b")) == "m"


def using(port: int, address: str = "", protocol: str = "TCP") -> tuple[Json, ...]:
    return (
        {"hostPort": port, "containerPort": port, "protocol": protocol, **({"hostIP": address} if address else {})},
    )


def test_a_port_on_all_addresses_is_in_the_way_of_each() -> None:
    world = World(node("n"))
    world.on("n", pod("a", ports=using(80)))
    reason = "node(s) didn't have free ports for the requested pod ports"
    assert world.why(pod("p", ports=using(80, "10.0.0.1"))) == {"n": reason}


def container(cpu: str, name: str = "c", **more: Any) -> Json:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "cpu_milli"),
    [
        ({"containers": [container("1"), container("500m")]}, 1500),
        ({"containers": [container("1")], "initContainers": [container("3"), container("2")]}, 3000),
        ({"containers": [container("1")], "initContainers": [container("2", **SIDECAR), container("2")]}, 4000),
        ({"containers": [container("1")], "initContainers": [container("2"), container("2", **SIDECAR)]}, 3000),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "3"}}}, 3000),
        ({"containers": [container("5")], "resources": {"requests": {"cpu": "3"}}}, 3000),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "3"}}, "overhead": {"cpu": "1"}}, 4000),
        ({"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}, 2000),
        ({"containers": [container("0.5m")]}, 1),
    ],
)
def test_a_pod_needs_the_most_that_it_asks_for_at_any_time(spec: Json, cpu_milli: int) -> None:
    assert needs(pod("p", **spec)) == Resources(cpu_milli=cpu_milli)


@pytest.mark.parametrize(
    ("given", "pending", "cpu_milli"),
    [("2", "", 2000), ("500m", "", 1000), ("500m", "Deferred", 1000), ("500m", "Infeasible", 500)],
)
def test_while_it_is_resized_the_larger_counts_of_what_it_wants_and_has(
    given: str, pending: str, cpu_milli: int
) -> None:
    conditions = [{"type": "PodResizePending", "status": "True", "reason": pending}] if pending else []
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": given}}], "conditions": conditions}
    assert needs(pod("p", status=status, containers=[container("1")])).cpu_milli == cpu_milli


def test_only_some_resources_can_be_said_of_the_pod_as_a_whole() -> None:
    whole = {"requests": {"memory": "1Gi", "hugepages-2Mi": "4Mi", "example.com/fpga": "9"}}
    asked = asked_by(pod("p", containers=[container("1")], resources=whole))
    assert asked == {"cpu": 1000, "memory": GIB, "hugepages-2Mi": 4 << 20}


def test_what_is_no_amount_is_more_than_there_is_and_is_named() -> None:
    wrong = pod("p", containers=[container("much")])
    assert needs(wrong).cpu_milli == MOST
    assert World(node("n")).predicates.unsupported(wrong) == "container c asks for 'much' of cpu, which is no amount"
