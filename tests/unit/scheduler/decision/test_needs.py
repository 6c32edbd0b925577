"""How much CPU and memory a pod counts for, as kubelet counts it."""

from __future__ import annotations

import pytest

from partage_plugins import DecodeError
from partage_plugins.vocabulary import ContainerName, Pod, PodContainer, Role, Room
from partage_scheduler.decision import needs_of
from support.sides import pod

GIB = 1 << 30


def a_pod(*containers: tuple[Role, str, str]) -> Pod:
    """Containers with their role, CPU and memory, in the order in which they start."""
    made = tuple(
        PodContainer(name=ContainerName(f"c{place}"), role=role, requests={"cpu": cpu, "memory": memory})
        for place, (role, cpu, memory) in enumerate(containers)
    )
    return Pod(ref=pod().ref, containers=made)


def test_containers_that_run_at_once_are_added_up() -> None:
    both = a_pod(("app", "500m", "1Gi"), ("app", "2", "1G"))
    assert needs_of(both) == Room(cpu_milli=2500, memory_bytes=GIB + 10**9)


def test_init_containers_count_once_and_only_where_they_need_more() -> None:
    assert needs_of(a_pod(("init", "3", "0"), ("init", "2", "4Gi"), ("app", "1", "1Gi"))) == Room(
        cpu_milli=3000, memory_bytes=4 * GIB
    )


def test_a_sidecar_runs_beside_the_init_containers_after_it_and_all_apps() -> None:
    assert needs_of(a_pod(("init", "4", "0"), ("sidecar", "1", "0"), ("init", "4", "0"), ("app", "2", "0"))) == Room(
        cpu_milli=5000
    )
    assert needs_of(a_pod(("sidecar", "1", "0"), ("app", "5", "0"))).cpu_milli == 6000


def test_a_limit_counts_where_nothing_is_requested() -> None:
    limited = PodContainer(name=ContainerName("c"), limits={"cpu": "2", "memory": "1Gi"}, requests={"cpu": "1"})
    assert needs_of(Pod(ref=pod().ref, containers=(limited,))) == Room(cpu_milli=1000, memory_bytes=GIB)


def test_overhead_comes_on_top_and_fractions_are_rounded_up() -> None:
    assert needs_of(a_pod(("app", "1u", "1500m")), {"cpu": "250m"}) == Room(cpu_milli=251, memory_bytes=2)


@pytest.mark.parametrize("wrong", ["much", "-1", "1E"])
def test_what_is_no_amount_of_cpu_is_named(wrong: str) -> None:
    with pytest.raises(DecodeError, match=r"\$\.containers\.c0\.cpu is .*; allowed: "):
        needs_of(a_pod(("app", wrong, "0")))
