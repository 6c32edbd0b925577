"""A budget in the native dialect: one annotation, and amounts that are given once or are equal."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from partage_plugins.api import (
    Budgeted,
    BudgetName,
    ContainerName,
    GpuRequest,
    Namespace,
    Pod,
    PodContainer,
    PodName,
    PodRef,
    PodUid,
)
from partage_plugins.api.keys import BUDGET, GPU_MILLI
from partage_plugins.codecs.native import read_asks
from partage_plugins.errors import DecodeError

INIT, A, B, C = map(ContainerName, ("init", "a", "b", "c"))
HALF = GpuRequest(share_milli=500)
Asks = dict[ContainerName, GpuRequest | Budgeted]


def asks(budget: str, **milli: int) -> Asks:
    """The requests of a pod with these containers; `init` is an init container, 0 stands for no request."""
    containers = tuple(
        PodContainer(
            name=ContainerName(name),
            role="init" if name == "init" else "app",
            limits={GPU_MILLI: str(each)} if each else {},
        )
        for name, each in milli.items()
    )
    ref = PodRef(namespace=Namespace("n"), name=PodName("p"), uid=PodUid("u"))
    return read_asks(Pod(ref=ref, annotations={BUDGET: budget}, containers=containers))


def of(budget: str, ask: GpuRequest = HALF) -> Budgeted:
    return Budgeted(budget=BudgetName(budget), ask=ask)


@pytest.mark.parametrize(
    ("budget", "milli", "expected"),
    [
        pytest.param("pod", {"a": 500, "b": 500}, {A: of("pod"), B: of("pod")}, id="for all that ask"),
        pytest.param("pod", {"a": 500, "b": 0}, {A: of("pod")}, id="for all, not for one that asks for nothing"),
        pytest.param(
            "pod", {"init": 500, "a": 500}, {INIT: HALF, A: of("pod")}, id="for all, not for an init container"
        ),
        pytest.param("a: x; b: x", {"a": 500, "b": 0}, {A: of("x"), B: of("x")}, id="named, the amounts said once"),
        pytest.param("b: x", {"a": 500, "b": 500}, {A: HALF, B: of("x")}, id="named, others on their own"),
        pytest.param(
            "a: x; b: x; c: y",
            {"a": 500, "b": 0, "c": 500},
            {A: of("x"), B: of("x"), C: of("y")},
            id="two budgets",
        ),
        pytest.param(
            "init: x", {"init": 500, "a": 500}, {INIT: of("x"), A: HALF}, id="what the host refuses is passed on"
        ),
    ],
)
def test_who_uses_which_budget(budget: str, milli: Mapping[str, int], expected: Asks) -> None:
    assert asks(budget, **milli) == expected


@pytest.mark.parametrize("budget", ["b: x", "a: y; b: x"])
def test_a_budget_of_which_no_container_asks_is_refused(budget: str) -> None:
    with pytest.raises(DecodeError) as refused:
        asks(budget, a=500, b=0)
    assert str(refused.value) == (
        "request: partage.dev/budget is 'b: x'; allowed: a budget of which at least one container asks for cards"
    )
