"""What a claim gives of a node's cards: never more than a card has, and never more than its class allows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_dra.claims import MOST_RESULTS, Claim, DeviceShare, shares_of
from partage_dra.parts import cuts_of
from partage_plugins.api import GpuGrant
from partage_plugins.api.claim_devices import device_name
from partage_plugins.errors import DecodeError, PartageError, Refused
from support.claim_objects import config, result
from unit.dra.making import ASKED, GIB, A, B, card, claim, part

DEVICE, OTHER = device_name(A), device_name(B)
NODE = part(card(), card(B, index=1))


def shares(*results: dict[str, Any], configs: tuple[dict[str, Any], ...] = ()) -> tuple[DeviceShare, ...]:
    return shares_of(claim(*results, configs=configs), ASKED, NODE, "n1")


def limits(*configs: dict[str, Any], request: str = "gpu", share: str = "300") -> int:
    (found,) = shares(result(DEVICE, share, request=request), configs=configs)
    assert found.grant is not None
    return found.grant.limit_milli


def test_a_result_is_a_grant_on_the_card_of_its_device() -> None:
    (found,) = shares(result(DEVICE))
    assert (found.request, found.pool, found.device) == ("gpu", "n1", DEVICE)
    assert found.share_id == "a671734a-e8e5-11e4-8fde-42010af09327"
    assert found.card.id == A
    assert found.grant == GpuGrant(card=A, share_milli=300, limit_milli=1000, memory_bytes=8 * GIB)


@pytest.mark.parametrize(("said", "meant"), [("1k", 1000), ("1e2", 100), ("0", 0), ("500000m", 500)])
def test_amounts_are_quantities(said: str, meant: int) -> None:
    (found,) = shares(result(DEVICE, said))
    assert found.grant is not None
    assert found.grant.share_milli == meant


def test_several_shares_of_one_card_and_of_others_stay_apart() -> None:
    found = shares(result(DEVICE, request="train"), result(DEVICE, "200", request="side"), result(OTHER, request="far"))
    assert [(each.request, each.card.id, each.grant and each.grant.share_milli) for each in found] == [
        ("train", A, 300),
        ("side", A, 200),
        ("far", B, 300),
    ]


def test_devices_of_other_drivers_and_nodes_are_theirs() -> None:
    found = shares(result("x", driver="gpu.nvidia.com"), result(DEVICE, pool="n2"), result(OTHER))
    assert [each.card.id for each in found] == [B]


class TestLimits:
    """The lowest limit holds: a claim raises nothing that its class sets."""

    def test_the_lowest_holds_whoever_says_it(self) -> None:
        assert limits(config(limitMilli=500), config(limitMilli=800)) == 500
        assert limits(config(limitMilli=800), config(limitMilli=500)) == 500

    def test_one_for_other_requests_does_not(self) -> None:
        assert limits(config("other", limitMilli=500)) == 1000
        assert limits(config("other", "gpu", limitMilli=500)) == 500

    def test_one_for_a_request_holds_for_its_alternatives(self) -> None:
        assert limits(config("gpu", limitMilli=500), request="gpu/small") == 500
        assert limits(config("gpu/large", limitMilli=500), request="gpu/small") == 1000

    def test_other_drivers_are_not_read(self) -> None:
        assert limits(config(driver="gpu.nvidia.com", limitMilli="?")) == 1000

    def test_one_below_the_share_is_refused(self) -> None:
        with pytest.raises(Refused, match="a share of 300 with a limit of 200 milli"):
            limits(config(limitMilli=200))

    @pytest.mark.parametrize(
        "said",
        [{"limitmilli": 500}, {"limitMilli": "500"}, {"limitMilli": 0}, {"limitMilli": 1001}, {"kind": "GpuConfig"}],
    )
    def test_what_is_not_understood_is_refused(self, said: dict[str, Any]) -> None:
        with pytest.raises(DecodeError, match=r"parameters of gpu\.partage\.dev"):
            limits(config(**said))


class TestRefusals:
    @pytest.mark.parametrize(
        ("forged", "said"),
        [
            (result(DEVICE, "99999"), "a whole quantity from 0 to 1000"),
            (result(DEVICE, "-1"), "a whole quantity from 0 to 1000"),
            (result(DEVICE, "1500m"), "a whole quantity"),
            (result(DEVICE, memory="25Gi"), f"a whole quantity from 0 to {24 * GIB}"),
            (result(DEVICE, share=None), r"gpu\.consumedCapacity\.share is absent"),
            (result(DEVICE, memory=None), r"gpu\.consumedCapacity\.memory is absent"),
            (result("gpu-7"), "device gpu-7 is not on this node"),
        ],
    )
    def test_more_than_the_card_has_is_never_given(self, forged: dict[str, Any], said: str) -> None:
        with pytest.raises(PartageError, match=said):
            shares(forged)

    def test_a_card_that_left_the_pool_is_no_device(self) -> None:
        with pytest.raises(Refused, match="not in its pool dra any more"):
            shares_of(claim(result(DEVICE)), ASKED, part(card(pool="shared")), "n1")

    def test_a_lost_card_is_given_to_nobody(self) -> None:
        with pytest.raises(Refused, match="is lost"):
            shares_of(claim(result(DEVICE)), ASKED, part(card(health="lost")), "n1")

    def test_another_claim_of_this_name_is_not_the_one(self) -> None:
        with pytest.raises(Refused, match="is another one by now"):
            shares_of(claim(result(DEVICE), uid="0815"), ASKED, NODE, "n1")

    def test_a_claim_without_an_allocation_gives_nothing(self) -> None:
        bare = msgspec.json.decode(b'{"metadata":{"uid":"5f0c"},"status":{}}', type=Claim)
        with pytest.raises(Refused, match="is not allocated"):
            shares_of(bare, ASKED, NODE, "n1")

    @pytest.mark.parametrize("count", [0, MOST_RESULTS + 1])
    def test_so_many_devices_are_no_allocation(self, count: int) -> None:
        with pytest.raises(Refused, match=f"has {count} devices here"):
            shares(*[result(DEVICE, "1", "1Mi")] * count)


def test_who_may_look_at_a_card_takes_nothing_of_it() -> None:
    """Its consumed capacity reads full, and has no meaning."""
    (found,) = shares(result(DEVICE, "1k", "24Gi", adminAccess=True))
    assert found.grant is None


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=80))
def test_whatever_an_allocation_says_it_gives_what_a_card_has_or_is_refused(
    share: str, memory: str, device: str
) -> None:
    try:
        (found,) = shares(result(device if device.startswith("gpu-z") else DEVICE, share, memory))
    except PartageError:
        return
    assert found.grant is not None
    assert 0 <= found.grant.share_milli <= 1000
    assert 0 <= found.grant.memory_bytes <= 24 * GIB


def test_a_fixed_part_is_what_it_is_whatever_is_consumed() -> None:
    cuts = cuts_of(["all=4"])
    (part_,) = (each for each in cuts.of(card(A)) if each.place == 2)
    given = {**result(part_.device(A)), "consumedCapacity": {}, "shareID": None}
    (share,) = shares_of(claim(given), ASKED, part(card()), "n1", cuts)
    assert share.grant is not None
    assert (share.grant.share_milli, share.grant.memory_bytes, share.grant.limit_milli) == (250, 6 * GIB, 1000)
    with pytest.raises(Refused, match="is not on this node"):
        shares_of(claim(result(DEVICE)), ASKED, part(card()), "n1", cuts)


def test_a_card_that_kubelet_gave_to_somebody_else_is_not_given_again() -> None:
    given = card(health="degraded: kubelet gave it to pod ml/train (container main)", cause="native")
    with pytest.raises(Refused, match="is not free: degraded: kubelet gave it to pod ml/train"):
        shares_of(claim(result(DEVICE)), ASKED, part(given), "n1")
