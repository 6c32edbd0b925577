"""Requests of claims are read as written; what is unclear is rejected, never guessed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_dra.claims import Claim, shares_of
from partage_plugins.api import GpuGrant, GpuPart, GpuRequest, Namespace, NodeName
from partage_plugins.api.claims import ClaimRef, ClaimUid
from partage_plugins.api.gpu import MIB
from partage_plugins.errors import Refused
from partage_scheduler.claims import ClaimGrant, allocation_of, asked_of
from partage_scheduler.claims.selectors import chosen_by
from partage_scheduler.objects.claims import Cel, Selector
from support.claim_objects import CLASS, config, request
from support.gpu_fleet import GIB, card
from support.objects import read
from unit.scheduler.claims.made import claim, device_class

CLASSES = {CLASS: device_class()}
ATTRIBUTE = 'device.attributes["gpu.partage.dev"]'


def the_ask(*requests: dict[str, Any], **said: Any) -> GpuRequest:
    ((_, ask),) = asked_of(claim("c", *requests, **said), CLASSES).requests
    return ask


def test_amounts_are_of_each_card_and_rounded_up_as_the_drivers_devices_say() -> None:
    ask = the_ask(request(share="50500m", memory="1500Ki", count=2))
    assert (ask.count, ask.share_milli, ask.memory_bytes) == (2, 51, 2 * MIB)
    assert ask.is_claim


def test_what_is_not_named_is_all_of_the_card() -> None:
    ask = the_ask(request(share=None, memory=None))
    assert (ask.share_milli, ask.memory_on(16 * GIB + 5)) == (1000, 16 * GIB)
    assert the_ask(request(share="300", memory=None)).memory_on(16 * GIB) == 16 * GIB
    assert the_ask(request(share="0", memory="0")).memory_bytes == MIB


def test_the_lowest_ceiling_of_class_and_claim_holds() -> None:
    classes = {CLASS: device_class(600)}
    limits = {
        of_claim: asked_of(claim("c", limit_milli=of_claim), classes).requests[0][1].limit_milli
        for of_claim in (400, 900)
    }
    assert limits == {400: 400, 900: 600}


def test_parameters_for_another_request_or_driver_are_not_ours() -> None:
    other = config("other", limitMilli=400), config(driver="gpu.example.org", unknown=1)
    assert the_ask(request(), config=other).limit_milli == 1000


def test_what_classes_say_is_written_before_what_the_claim_says() -> None:
    classes = {CLASS: device_class(600)}
    written = asked_of(claim("c", request(name="a"), request(name="b"), limit_milli=500), classes).config
    assert [(each["source"], each["requests"]) for each in written] == [
        ("FromClass", ["a"]),
        ("FromClass", ["b"]),
        ("FromClaim", []),
    ]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (claim("c", request(share="1100")), "asks for '1100' of share; allowed: a quantity from 0 to 1000"),
        (claim("c", request(share="-1")), "asks for '-1' of share"),
        (claim("c", request(memory="much")), "asks for 'much' of memory"),
        (
            claim("c", request(capacity={"requests": {"shares": "1"}})),
            "asks for 'shares' of a card; allowed: share, mem",
        ),
        (claim("c", config=[config(limitMili=500)]), "limitMili"),
        (claim("c", limit_milli=200), "has a share of 300 and a limit of 200 milli"),
        (claim("c", request(deviceClassName="other")), 'deviceclass "other" not found'),
        (claim("c", request(adminAccess=True)), "is for administrators"),
        (claim("c", request(allocationMode="All")), "has All; allowed: ExactCount"),
        (claim("c", request(count=33)), "counts 33; allowed: 1 to 32"),
        (
            claim("c", request(name="a", count=20), request(name="b", count=20)),
            "asks for 40 devices; allowed: at most 32",
        ),
        (claim("c", {"name": "a", "firstAvailable": [{"name": "x"}]}), "names alternatives"),
        (claim("c", constraints=[{"matchAttribute": "gpu.partage.dev/uuid"}]), "has constraints"),
        (claim("c", request(selectors=[{"cel": {"expression": "true"}}])), "selects devices by 'true'; allowed:"),
    ],
)
def test_what_is_not_understood_is_refused_in_words(written: Any, words: str) -> None:
    with pytest.raises(Refused) as refused:
        asked_of(written, CLASSES)
    assert words in str(refused.value)


def test_a_class_of_another_driver_is_none_of_ours() -> None:
    for expression, words in (
        ('device.driver == "gpu.nvidia.com"', "is of driver gpu.nvidia.com"),
        ("device.allowMultipleAllocations", "does not say device.driver"),
    ):
        with pytest.raises(Refused, match=words):
            asked_of(claim("c"), {CLASS: device_class(expression=expression)})


def test_cards_are_chosen_by_what_selectors_compare() -> None:
    by_uuid = request(selectors=[{"cel": {"expression": f'{ATTRIBUTE}.uuid == "GPU-1"'}}])
    by_model = request(
        selectors=[{"cel": {"expression": f'{ATTRIBUTE}.model == "T4" && device.driver == "gpu.partage.dev"'}}]
    )
    assert the_ask(by_uuid).cards == ("GPU-1",)
    assert the_ask(by_model).models == ("T4",)
    both = [{"cel": {"expression": f'{ATTRIBUTE}.uuid == "GPU-{number}"'}} for number in (1, 2)]
    with pytest.raises(Refused, match="GPU-1 and GPU-2 at once"):
        the_ask(request(selectors=both))


TERMS = st.sampled_from(
    [
        'device.driver == "gpu.partage.dev"',
        "device.allowMultipleAllocations",
        f'{ATTRIBUTE}.model == "T4"',
        f'{ATTRIBUTE}.model != "T4"',
        "device.driver",
        "true",
        "!device.allowMultipleAllocations",
        "",
    ]
)
JOINS = st.sampled_from(["&&", " && ", "||", " ", "&"])


@given(
    st.one_of(
        st.text(max_size=80),
        st.lists(st.tuples(TERMS, JOINS), max_size=4).map(lambda each: "".join(map("".join, each))),
    )
)
def test_any_expression_is_read_as_a_conjunction_of_what_is_known_or_refused(expression: str) -> None:
    try:
        chosen_by((Selector(cel=Cel(expression=expression)),), "it")
    except Refused:
        return
    assert not {"||", "!"} & {expression[at : at + length] for at in range(len(expression)) for length in (1, 2)}
    terms = [each.strip() for each in expression.split("&&")]
    assert all(each.startswith("device.") and each != "device.driver" for each in terms)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


@given(parameters=JSON, share=st.text(max_size=6), memory=st.text(max_size=6), count=st.integers(-5, 99))
def test_any_claim_is_read_or_refused(parameters: Any, share: str, memory: str, count: int) -> None:
    said = {"opaque": {"driver": "gpu.partage.dev", "parameters": parameters}}
    try:
        ask = the_ask(request(share=share, memory=memory, count=count), config=[said])
    except Refused:
        return
    assert 0 <= ask.share_milli <= ask.limit_milli <= 1000


@given(
    share=st.integers(0, 1000),
    memory=st.integers(1, 16 << 10),
    limits=st.lists(st.integers(1, 1000), max_size=3),
    count=st.integers(1, 3),
)
def test_the_driver_reads_from_an_allocation_what_was_decided(
    share: int, memory: int, limits: list[int], count: int
) -> None:
    """The driver reads back what the scheduler wrote: card by card the same share, limit and memory."""
    written = claim(
        "c",
        request(share=str(share), memory=f"{memory}Mi", count=count),
        config=[config(limitMilli=each) for each in limits],
    )
    if min(limits, default=1000) < share:
        with pytest.raises(Refused):
            asked_of(written, CLASSES)
        return
    asked = asked_of(written, CLASSES)
    ((name, ask),) = asked.requests
    cards = tuple(card(f"GPU-{place}", pool="dra") for place in range(count))
    decided = tuple(
        GpuGrant(
            card=each.id,
            share_milli=ask.share_milli,
            limit_milli=ask.limit_milli,
            memory_bytes=ask.memory_on(each.memory_bytes),
        )
        for each in cards
    )
    grant = ClaimGrant(
        namespace="team",
        name="c",
        uid="uid-c",
        node=NodeName("n"),
        given=tuple((name, each) for each in decided),
        config=asked.config,
    )
    stands = read(Claim, metadata={"uid": "uid-c"}, status={"allocation": allocation_of(grant, lambda: "id")})
    shares = shares_of(
        stands,
        ClaimRef(Namespace("team"), "c", ClaimUid("uid-c")),
        GpuPart(driver="580", cuda="13.0", cards=cards),
        "n",
    )
    assert tuple(each.grant for each in shares) == decided
