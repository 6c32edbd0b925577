"""A node's devices as API objects, and slices that replace others."""

from __future__ import annotations

from typing import Any

import msgspec

from partage_base.kube import Meta, Node
from partage_dra.parts import cuts_of
from partage_dra.resource_slice import (
    MOST_COUNTER_SETS,
    MOST_DEVICES,
    ResourceSlice,
    are_true,
    contents_of,
    slices_of,
)
from partage_dra.slices import counters_of, devices_of
from partage_plugins.api import CardId
from partage_plugins.api.claim_devices import device_name
from unit.dra.making import GIB, A, card, part

NODE = Node(metadata=Meta(name="n1", uid="u-1"))


def contents(**said: Any) -> Any:
    return contents_of(devices_of(part(card(**said))))


def devices(**said: Any) -> Any:
    (content,) = contents(**said)
    return content["devices"]


def stands(*made: dict[str, Any]) -> dict[str, ResourceSlice]:
    """The slices as the API server would return them."""
    return {each["metadata"]["name"]: msgspec.convert(each, ResourceSlice, strict=False) for each in made}


def test_a_card_is_a_device_of_which_claims_take_parts() -> None:
    (device,) = devices()
    assert device["name"] == device_name(A)
    assert device["allowMultipleAllocations"]
    assert device["attributes"]["uuid"] == {"string": A}
    assert device["attributes"]["index"] == {"int": 0}
    whole = {"min": "0", "max": "1000", "step": "1"}
    assert device["capacity"]["share"] == {
        "value": "1000",
        "requestPolicy": {"default": "1000", "validRange": whole},
    }
    assert device["capacity"]["memory"]["value"] == str(24 * GIB)
    assert "taints" not in device


def test_a_card_that_is_lost_ends_those_that_have_it() -> None:
    (device,) = devices(health="lost")
    (taint,) = device["taints"]
    assert (taint["key"], taint["effect"]) == ("gpu.partage.dev/health", "NoExecute")


def test_the_slice_is_the_node_s_and_goes_with_it() -> None:
    (made,) = slices_of(NODE, contents(), {})
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u-1"
    assert made["spec"]["nodeName"] == made["spec"]["pool"]["name"] == "n1"
    assert made["spec"]["pool"]["generation"] == 1


def test_in_place_of_another_one_its_generation_is_higher() -> None:
    before = stands(*slices_of(NODE, contents(), {}))
    assert are_true("n1", before, contents())
    assert not are_true("n1", before, contents(index=1))
    (after,) = slices_of(NODE, contents(index=1), before)
    assert after["spec"]["pool"]["generation"] == 2


def test_a_card_that_is_cut_is_parts_that_draw_on_its_counters() -> None:
    cut, cuts = part(card()), cuts_of([f"{A}=2+4"])
    first, counting = contents_of(devices_of(cut, cuts), counters_of(cut, cuts))
    parts = first["devices"]
    name = device_name(A)
    assert [each["name"] for each in parts] == [
        *(f"{name}-1of2-{place}" for place in range(2)),
        *(f"{name}-1of4-{place}" for place in range(4)),
    ]
    assert parts[2]["attributes"]["part"] == {"string": "1of4"}
    assert parts[2]["capacity"] == {"share": {"value": "250"}, "memory": {"value": str(6 * GIB)}}
    (drawn,) = parts[2]["consumesCounters"]
    assert drawn == {"counterSet": name, "counters": {"share": {"value": "250"}, "memory": {"value": str(6 * GIB)}}}
    assert not any("allowMultipleAllocations" in each for each in parts)
    (counters,) = counting["sharedCounters"]
    assert counters["counters"] == {"share": {"value": "1000"}, "memory": {"value": str(24 * GIB)}}
    assert counters["name"] == name


def test_many_devices_are_slices_of_one_pool() -> None:
    cards = [card(CardId(f"GPU-{number:08x}"), index=number) for number in range(12)]
    cut, cuts = part(*cards), cuts_of(["all=8"])
    wanted = contents_of(devices_of(cut, cuts), counters_of(cut, cuts))
    made = slices_of(NODE, wanted, {})
    assert [len(each["spec"].get("devices", ())) for each in made] == [MOST_DEVICES, 12 * 8 - MOST_DEVICES, 0, 0]
    assert [len(each["spec"].get("sharedCounters", ())) for each in made] == [0, 0, MOST_COUNTER_SETS, 4]
    assert {(each["spec"]["pool"]["generation"], each["spec"]["pool"]["resourceSliceCount"]) for each in made} == {
        (1, 4)
    }
    before = stands(*made)
    assert are_true("n1", before, wanted)
    assert not are_true("n1", before, wanted[:1])
    assert not are_true("n1", {name: each for name, each in before.items() if not name.endswith("-3")}, wanted)
    half_written = before | stands(slices_of(NODE, wanted, before)[0])
    assert not are_true("n1", half_written, wanted), "two generations are no pool"


def test_no_devices_are_no_slices() -> None:
    assert contents_of((), ()) == ()
    assert are_true("n1", {}, ())
    assert not are_true("n1", stands(*slices_of(NODE, contents(), {})), ())


def test_what_others_wrote_has_no_content_of_ours() -> None:
    assert msgspec.json.decode(b'{"metadata":{},"spec":{"pool":{"generation":7}}}', type=ResourceSlice).content == ""
