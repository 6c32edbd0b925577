"""Which limits a selection refers to; an ambiguous one is refused with both candidates."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from partage_cli.limits.choice import chosen, require_one_container
from partage_isolation.wire.messages import BrokerReport
from partage_oci.words import NAMESPACE
from partage_plugins.api import CardId, PodName, PodRef, PodUid
from partage_plugins.api.names import BudgetName
from partage_plugins.errors import Refused
from support.broker import CARD, container, held, pod, told

OTHER = CardId("GPU-5a1eaaaa-0000-4000-8000-000000000000")
TRAIN = container(pod("train"), held(), held(OTHER))
SIDE = container(pod("train"), held(), name="side")
HOW = told(TRAIN, SIDE, container(pod("serve"), held()), container(pod("serve", "team-b"), held()))


def meant(
    pod_: str, how: BrokerReport = HOW, container_: str | None = None, card: str | None = None
) -> list[tuple[str, str]]:
    return [(each.grantee.name, each.held.card) for each in chosen(how, pod_, container=container_, card=card)]


@pytest.mark.parametrize("said", ["train", "team-a/train", "uid-of-team-a-train"])
def test_a_pod_goes_by_name_by_namespace_or_by_uid(said: str) -> None:
    assert meant(said) == [("main", CARD), ("main", OTHER), ("side", CARD)]


@pytest.mark.parametrize("said", ["serving", "4f" * 6, "4f" * 32])
def test_a_container_of_docker_goes_by_name_or_by_id_which_may_be_shortened(said: str) -> None:
    ref = PodRef(namespace=NAMESPACE, name=PodName("serving"), uid=PodUid("4f" * 32))
    assert meant(said, told(TRAIN, container(ref, held()))) == [("main", CARD)]


@pytest.mark.parametrize("said", [CARD, "0", "GPU-5a1e3"])
def test_a_card_goes_by_id_by_index_or_by_how_it_begins(said: str) -> None:
    assert meant("train", card=said) == [("main", CARD), ("side", CARD)]


def test_one_container_of_several() -> None:
    assert meant("train", container_="side") == [("side", CARD)]


@pytest.mark.parametrize(
    ("pod_", "container_", "card", "why"),
    [
        ("none", None, None, "the broker of this node has no limits of pod none; does it run here, .*"),
        ("serve", None, None, r"serve could be team-a/serve \(.*\), team-b/serve \(.*\); say which one as .*"),
        ("train", "other", None, "pod train has no limits in a container other; it has them in main, side"),
        ("train", None, "GPU-5a1e", f"card GPU-5a1e means {CARD}, {OTHER}; say its id"),
        ("train", None, "7", "card 7 means no card of this node; say its id"),
        ("train", "side", OTHER, f"no container of pod train has card {OTHER}; .*"),
    ],
)
def test_what_means_none_or_two_is_refused(pod_: str, container_: str | None, card: str | None, why: str) -> None:
    with pytest.raises(Refused, match=f"^{why}$"):
        meant(pod_, container_=container_, card=card)


def test_a_claim_goes_by_its_own_name_which_is_told_to_who_names_its_pod() -> None:
    claim = replace(container(pod("train-gpu-x7f2k"), held(), name="claim"), is_claim=True)
    assert meant("team-a/train-gpu-x7f2k", told(claim, SIDE)) == [("claim", CARD)]
    with pytest.raises(Refused, match=r"; claims go by their own names: team-a/train-gpu-x7f2k$"):
        meant("serve", told(claim, SIDE))


def test_containers_of_a_budget_are_meant_together() -> None:
    both = [replace(container(pod("two"), held(), name=name), budget=BudgetName("pod")) for name in ("a", "b")]
    how = told(*both, container(pod("two"), held(), name="c"))
    assert meant("two", how) == [("pod (a, b)", CARD), ("c", CARD)]
    assert meant("two", how, container_="b") == [("pod (a, b)", CARD)]
    require_one_container(chosen(told(*both), "two", container=None, card=None), "two")


def test_a_change_is_for_one_container() -> None:
    require_one_container(chosen(HOW, "train", container="main", card=None), "train")
    with pytest.raises(Refused, match="limits in several containers: main, side; say which one by --container"):
        require_one_container(chosen(HOW, "train", container=None, card=None), "train")
