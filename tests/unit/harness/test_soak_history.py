"""The judge of `soak scheduler` detects violations, and does not mistake outages for them."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_plugins.codecs import key_id
from partage_scheduler.objects import ApiPod
from rig.client.binding import signed
from soak.scheduling.history import History, Outage, Placed, at_share, untouched
from support.objects import allocation, grant, pod

KEY = Ed25519PrivateKey.generate()
MEMORY = 100


def a_pod(uid: str, *, milli: int = 0, node: str = "", of: str = "", **status: Any) -> ApiPod:
    """A pod with this much of a card granted, or only requested."""
    given = milli and node
    notes = signed(allocation(of or uid, node, grant("card", milli, memory=10)), KEY) if given else {}
    return pod(uid, uid=uid, milli=milli, node=node, annotations=notes, status=status)


@pytest.fixture
def history() -> History:
    return History(card_memory_bytes=MEMORY)


def test_what_is_as_it_should_be_is_not_wrong(history: History) -> None:
    history.told(a_pod("a", milli=600), 0.0)
    history.told(a_pod("a", milli=600, node="n"), 1.0)
    history.told(a_pod("a", milli=600, node="n", phase="Succeeded"), 2.0)
    history.told(a_pod("b", milli=600, node="n"), 3.0)
    history.gone(a_pod("a"))
    assert (history.wrong, history.waiting) == ([], [])
    assert history.verified({key_id(KEY.public_key()): KEY.public_key()}) == 2
    assert history.placed[0].seconds == 1.0


def test_a_card_that_is_given_away_twice_is_wrong(history: History) -> None:
    history.told(a_pod("a", milli=600, node="n"), 0.0)
    history.told(a_pod("b", milli=600, node="n"), 1.0)
    assert "over-commits card card" in history.wrong[0]


def test_a_pod_that_is_bound_twice_is_wrong(history: History) -> None:
    history.told(a_pod("a", milli=100, node="n"), 0.0)
    history.told(a_pod("a", milli=100, node="other"), 1.0)
    assert history.wrong == ["a was bound to n, and then to other"]


def test_an_allocation_of_somebody_else_is_wrong(history: History) -> None:
    history.told(a_pod("a", milli=100, node="n", of="b"), 0.0)
    assert history.wrong == ["a has the allocation of b on n"]


def test_a_signature_of_somebody_else_is_wrong(history: History) -> None:
    history.told(a_pod("a", milli=100, node="n"), 0.0)
    history.verified({})
    assert history.wrong


def test_who_was_there_in_an_outage_is_not_judged() -> None:
    placed = [Placed(0, 1, False, ()), Placed(4, 6, False, ()), Placed(5.5, 9, False, ()), Placed(7, 9, True, ())]
    assert untouched(placed, [Outage(5, 8)]) == [1]
    assert at_share([1.0, 2.0, 3.0, 4.0], 0.5) == 3.0
