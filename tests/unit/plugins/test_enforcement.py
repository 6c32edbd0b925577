"""A promise that nothing enforces stops a container, unless the operator made promises advisory."""

from __future__ import annotations

import pytest

from partage_plugins import Refused
from partage_plugins.api import GPU, Adjustment, Card, CardId, GpuGrant, GpuPart, Granted, Kind, Promise
from partage_plugins.rules.enforcement import Broken, Enforcement, require_enforced, unenforced

GIB = 1 << 30
CARD = Card(
    id=CardId("GPU-1"), index=0, model="L4", memory_bytes=24 * GIB, compute_capability="8.9", pci="0", pool="shared"
)
PART = GpuPart(driver="580", cuda="13.0", cards=(CARD,))


def given(share: int, limit: int, memory: int, *, card: str = "GPU-1", movable: bool = False) -> Granted:
    grant = GpuGrant(card=CardId(card), share_milli=share, limit_milli=limit, memory_bytes=memory, movable=movable)
    return Granted(gen=1, grants={GPU.name: (grant,)}, parts={GPU.name: PART})


def enforcing(*promises: Promise) -> Adjustment:
    return Adjustment(enforces={GPU.name: promises})


@pytest.mark.parametrize(
    ("granted", "enforced", "empty"),
    [
        (given(1000, 1000, 24 * GIB), (), ()),
        (given(1000, 1000, 10 * GIB), (), ("memory",)),
        (given(1000, 1000, 24 * GIB, card="GPU-unknown"), (), ("memory",)),
        (given(500, 1000, 12 * GIB), (), ("memory", "share")),
        (given(500, 500, 12 * GIB), ("memory",), ("limit", "share")),
        (given(0, 1000, 1 * GIB), ("memory", "share"), ()),
        (given(500, 500, 12 * GIB), ("memory", "share", "limit"), ()),
        (given(500, 500, 12 * GIB, movable=True), ("memory", "share", "limit"), ("movable",)),
        (given(500, 1000, 24 * GIB, movable=True), ("share",), ("memory", "movable")),
        (given(500, 1000, 24 * GIB, movable=True), ("memory", "movable", "share"), ()),
    ],
)
def test_what_a_grant_promises_and_nobody_enforces(
    granted: Granted, enforced: tuple[Promise, ...], empty: tuple[Promise, ...]
) -> None:
    assert unenforced(granted, enforcing(*enforced), [GPU]) == ({GPU.name: empty} if empty else {})


def test_without_the_inventory_every_card_counts_as_shared() -> None:
    granted = Granted(gen=1, grants=given(1000, 1000, 24 * GIB).grants)
    assert unenforced(granted, enforcing(), [GPU]) == {GPU.name: ("memory",)}


def test_strict_refuses_with_one_sentence_that_says_what_to_do() -> None:
    with pytest.raises(Refused) as caught:
        require_enforced({GPU.name: ("memory", "share"), Kind("fpga"): ("limit",)}, "strict")
    assert str(caught.value) == (
        "partage: no plugin on this node enforces limit of fpga; memory, share of gpu; install the isolation plugin on "
        "the node, or set enforce = advisory to start containers without limits in force"
    )


def test_advisory_lets_it_start_and_nothing_empty_is_ever_refused() -> None:
    require_enforced({GPU.name: ("memory",)}, "advisory")
    require_enforced({}, "strict")


@pytest.mark.parametrize("enforcement", ["strict", "advisory"])
def test_what_does_not_move_and_should_is_refused_whatever_the_setting(enforcement: Enforcement) -> None:
    with pytest.raises(Refused) as caught:
        require_enforced({GPU.name: ("movable",)}, enforcement)
    assert str(caught.value) == (
        "partage: nothing on this node moves the memory of this container off its card, which may be promised beyond "
        "what it has; upgrade partage-broker and its library there, or take partage.dev/movable off the pod"
    )


def test_of_limits_and_movement_that_are_missing_the_limits_are_told_first() -> None:
    broken: Broken = {GPU.name: ("memory", "movable", "share")}
    with pytest.raises(Refused, match="enforces memory, share of gpu; install the isolation plugin"):
        require_enforced(broken, "strict")
    with pytest.raises(Refused, match="nothing on this node moves"):
        require_enforced(broken, "advisory")
