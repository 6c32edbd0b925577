"""Native pods and shares beside each other: cards change pools, and no card is ever used by both."""

from __future__ import annotations

from rig.client.wait import until
from support.chain_stage import Chain
from support.extent import is_all
from support.pools_stage import CARDS, Churn, Witness, native_pod, pools_of, reservations, shared_pod, wait_all_kubelets

STEPS, LOOKS = 16 if is_all() else 6, 15
"""Samples of the witness between two steps: most pods start meanwhile, some do not."""


def test_a_share_takes_a_card_from_kubelet_and_gives_it_back_to_a_native_pod(chain: Chain) -> None:
    with Witness(chain) as witness:
        first = native_pod(chain, "first")
        share = shared_pod(chain, "share", 500)
        for pod in (first, share):
            pod.wait_running()
        assert sorted(pools_of(chain)) == ["kubelet", "shared"]
        second = native_pod(chain, "second")
        second.wait_why("Insufficient nvidia.com/gpu")
        share.delete_and_wait()
        second.wait_running()
        wait_all_kubelets(chain)
    assert not witness.wrong
    assert witness.native_seen
    assert witness.shared_seen


def test_a_card_whose_reservation_was_deleted_starts_no_native_container_beside_its_shares(chain: Chain) -> None:
    share = shared_pod(chain, "share", 500).wait_running()
    (reservation,) = reservations(chain)
    natives = [native_pod(chain, f"native-{number}") for number in range(CARDS)]
    reservation.delete(grace_s=1)

    def why_not() -> str | None:
        for pod in natives:
            pod.refresh()
        phases = sorted(pod.phase for pod in natives)
        is_refused = any("carries grants of partage" in str(event) for pod in natives for event in pod.events())
        return None if phases == ["Pending", "Running"] and is_refused else f"they are {phases}, refused: {is_refused}"

    until("one runs, and the other is refused the card with the share", why_not)
    share.delete_and_wait()
    for pod in natives:
        pod.wait_running()


def test_pods_that_come_and_go_by_chance_are_never_together_on_a_card(chain: Chain) -> None:
    churn = Churn(chain, seed=1)
    with Witness(chain) as witness:
        for _ in range(STEPS):
            churn.step()
            witness.wait_looks(LOOKS)
        churn.end()
        wait_all_kubelets(chain)
    assert not witness.wrong
    assert witness.samples
    assert churn.ran
