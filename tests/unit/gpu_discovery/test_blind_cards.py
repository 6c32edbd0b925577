"""Cards for which NVML does not report processes' memory are marked blind, and take no pods by default."""

from __future__ import annotations

from partage_plugins.api import Card, HealthCause
from unit.gpu_discovery.making import MIG_A, ONE, TWO, MadeNode, gpu, instance, node_of


def causes(cards: tuple[Card, ...]) -> list[HealthCause | None]:
    return [card.cause for card in cards]


def test_a_blind_card_takes_no_pods_and_says_why(node: MadeNode) -> None:
    node.driver.says = node_of(gpu(tells_use=False), gpu(TWO, 1))
    blind, seeing = node.look()
    assert (blind.state, blind.cause, blind.is_allocatable) == ("degraded", HealthCause.BLIND, False)
    assert "PARTAGE_GPU_SHARE_BLIND" in str(blind.condition)
    assert seeing.is_allocatable


def test_a_card_stays_blind_while_nobody_is_on_it_and_after_a_new_start(node: MadeNode) -> None:
    node.driver.says = node_of(gpu(tells_use=False))
    node.look()
    node.driver.says = node_of(gpu(tells_use=None))
    assert causes(node.look()) == [HealthCause.BLIND]
    node.begin()
    assert causes(node.look()) == [HealthCause.BLIND]
    node.driver.says = node_of(gpu(tells_use=True))
    assert causes(node.look()) == [None]


def test_a_card_on_which_nobody_ever_was_is_not_taken_for_blind(node: MadeNode) -> None:
    node.driver.says = node_of(gpu(tells_use=None))
    assert node.look()[0].is_allocatable


def test_instances_are_blind_with_their_gpu(node: MadeNode) -> None:
    node.driver.says = node_of(gpu(ONE, is_mig=True, instances=(instance(MIG_A),), tells_use=False))
    assert causes(node.look()) == [HealthCause.BLIND]


def test_an_operator_may_share_blind_cards(node: MadeNode) -> None:
    node.settings = {"PARTAGE_GPU_SHARE_BLIND": "yes"}
    node.begin()
    node.driver.says = node_of(gpu(tells_use=False))
    assert node.look()[0].is_allocatable
