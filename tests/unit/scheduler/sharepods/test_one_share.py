"""Which card a pair of node and GPUID is, and what a SharePod shows its user of its pod."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from partage_plugins.api import BudgetName, grantee_of
from partage_plugins.api.keys import ALLOCATION, CARDS
from partage_plugins.codecs import encode_allocation
from partage_scheduler.sharepods.cards import CardBook, Pair, cards_of
from partage_scheduler.sharepods.objects import Key, OwnedPod, SharePod
from partage_scheduler.sharepods.status import status_of
from support.objects import allocation, grant
from unit.scheduler.sharepods.world import a_share

PAIR = Pair("n1", "abcde")


def share(name: str) -> SharePod:
    body = a_share(name, 100, node=PAIR.node, gpuid=PAIR.gpuid)
    return msgspec.convert({**body, "metadata": {**body["metadata"], "uid": f"uid-{name}"}}, SharePod)


def pod(name: str, *, node: str = "", **notes: str) -> OwnedPod:
    owner = {"apiVersion": "v1", "kind": "SharePod", "name": name, "uid": f"uid-{name}", "controller": True}
    meta: dict[str, Any] = {"name": name, "uid": f"pod-{name}", "ownerReferences": [owner], "annotations": notes}
    meta["creationTimestamp"] = f"2026-01-01T00:00:{name}Z"
    return msgspec.convert({"metadata": meta, "spec": {"nodeName": node}, "status": {"phase": "Pending"}}, OwnedPod)


def given(card: str, grantee: str = "main") -> str:
    return encode_allocation(allocation("u", "n1", grant(card, 100), container=grantee))


def test_a_pod_on_its_card_is_believed_before_a_pin_that_its_owner_wrote() -> None:
    book = CardBook(lambda: "drawn")
    book.seen(Key("a", "01"), share("01"), pod("01", **{CARDS: "GPU-written"}))
    assert book.card(PAIR) == "GPU-written"
    book.seen(Key("b", "02"), share("02"), pod("02", node="n1", **{ALLOCATION: given("GPU-given")}))
    assert book.card(PAIR) == "GPU-given"


def test_those_of_a_pair_hear_when_its_card_is_known_and_when_it_is_gone() -> None:
    book, first, second = CardBook(lambda: "drawn"), Key("a", "01"), Key("a", "02")
    book.seen(first, share("01"), pod("01"))
    book.seen(second, share("02"), None)
    assert (book.first(PAIR), book.card(PAIR)) == (first, "")
    assert book.seen(first, share("01"), pod("01", node="n1", **{ALLOCATION: given("GPU-1")})) == {second}
    assert book.card(PAIR) == "GPU-1"
    assert book.seen(first, None, None) == {second}
    assert (book.first(PAIR), book.card(PAIR)) == (None, "")


def test_a_name_that_is_in_use_is_not_drawn_again() -> None:
    names = iter(["abcde", "fresh"])
    book = CardBook(lambda: next(names))
    book.seen(Key("a", "01"), share("01"), pod("01", node="n1", **{ALLOCATION: given("GPU-1")}))
    assert book.gpuid("n1", "GPU-1") == "abcde"
    assert book.gpuid("n1", "GPU-2") == "fresh"


def test_a_pod_of_several_containers_has_the_card_of_its_budget() -> None:
    assert cards_of(pod("01", **{ALLOCATION: given("GPU-1", grantee_of(BudgetName("pod")))})) == ("GPU-1",)


def test_what_can_not_be_read_is_no_card() -> None:
    assert cards_of(pod("01", **{ALLOCATION: "{"})) == ()


NOW = "2026-01-01T00:00:00Z"
SYNCED = "SharePod synced successfully"


def waiting(**condition: Any) -> OwnedPod:
    of_pod = pod("01")
    status = {**of_pod.status, "conditions": [{"type": "PodScheduled", "status": "False", **condition}]}
    return msgspec.structs.replace(of_pod, status=status)


@pytest.mark.parametrize(
    ("of_pod", "message"),
    [
        (pod("01"), SYNCED),
        (
            waiting(message="exclusion: ask for a whole card"),
            f"{SYNCED}; its pod waits: exclusion: ask for a whole card",
        ),
        (waiting(status="True", message="placed"), SYNCED),
        (waiting(), SYNCED),
        (waiting(message=7), SYNCED),
    ],
)
def test_why_its_pod_waits_is_said(of_pod: OwnedPod, message: str) -> None:
    (condition,) = status_of(share("01"), of_pod, None, now=NOW)["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Synced", "True", "Synced")
    assert condition["message"] == message
