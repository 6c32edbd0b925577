"""Topology spread that must be kept: who is counted, over which nodes, and how uneven it may become."""

from __future__ import annotations

from typing import Any

import pytest

from partage_scheduler.objects import ApiPod
from support.objects import ZONE, Json, labelled, node, pod
from unit.scheduler.placing import World

WEB = {"app": "web"}


def constraint(skew: int = 1, key: str = ZONE, **more: Any) -> Json:
    selector = {"labelSelector": labelled(**WEB)}
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **selector, **more}


def web(name: str, *constraints: Json, labels: Json | None = None, **spec: Any) -> ApiPod:
    return pod(name, labels or WEB, topologySpreadConstraints=list(constraints), **spec)


def world(*counts: int, **labels: str) -> World:
    """Zones with so many pods each, on one node each."""
    there = World(*(node(f"n{place}", labels={ZONE: f"z{place}", **labels}) for place in range(len(counts))))
    for place, count in enumerate(counts):
        there.on(f"n{place}", *(pod(f"there-{place}-{number}", WEB) for number in range(count)))
    return there


@pytest.mark.parametrize(
    ("counts", "skew", "where"),
    [
        ((0, 0, 0), 1, "n0 n1 n2"),
        ((1, 0, 0), 1, "n1 n2"),
        ((1, 1, 0), 1, "n2"),
        ((1, 1, 1), 1, "n0 n1 n2"),
        ((2, 1, 0), 2, "n1 n2"),
        ((3, 0, 1), 3, "n1 n2"),
        ((5, 0, 0), 1, "n1 n2"),
    ],
)
def test_no_place_may_have_more_than_the_emptiest_by_too_many(counts: tuple[int, ...], skew: int, where: str) -> None:
    assert world(*counts).where(web("p", constraint(skew))) == where


def test_an_empty_selector_counts_nobody_but_the_pod_itself() -> None:
    """As kube-scheduler has it: what is empty selects everything elsewhere."""
    assert world(5, 0).where(web("p", constraint(labelSelector={}))) == "n0 n1"
    assert world(5, 0).where(web("p", constraint(labelSelector={}, matchLabelKeys=["app"]))) == "n1"


@pytest.mark.parametrize(("least", "where"), [(2, "n0 n1"), (3, ""), (1, "n0 n1")])
def test_while_there_are_fewer_places_than_there_should_be_the_emptiest_counts_as_empty(least: int, where: str) -> None:
    assert world(1, 1).where(web("p", constraint(minDomains=least))) == where
