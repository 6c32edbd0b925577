"""The outcome of a binding is determined reliably for every answer of the API server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.kube import ApiServer
from partage_scheduler.api.binder import Already, Binder, Bound, Failed, Lost, Outcome
from partage_scheduler.candidate import LeaseTerms
from support.fake_api import CutShort, Drop, FakeApi, Fault, Hang, Late, Refuse
from support.scheduling import PODS, create_pod, stands

ANNOTATIONS = {"alloc.partage.dev/allocation": "{}"}


HASTY = pytest.mark.parametrize("of_client", [{"deadline_s": 0.3}])
"""A short deadline of the client, for faults that let requests hang."""


@pytest.fixture
def binder(server: ApiServer) -> Binder:
    """A binder that stays in doubt longer than any test, so that no binding is given up."""
    return Binder(server, doubt_s=600, first_again_s=0.01)


async def bound(binder: Binder, api: FakeApi, node: str = "n1") -> Outcome:
    return await binder.bind(create_pod(api), node, ANNOTATIONS)


async def test_a_pod_is_bound_by_one_request(api: FakeApi, binder: Binder) -> None:
    assert await bound(binder, api) == Bound()
    assert stands(api).node == "n1"
    assert stands(api).metadata.annotations == ANNOTATIONS
    assert len(api.asked) == 1


async def test_the_api_server_is_told_when_to_give_a_binding_up(api: FakeApi, server: ApiServer) -> None:
    pod = create_pod(api)
    for binder in (Binder(server), Binder(server, within_s=1.6)):
        assert isinstance(await binder.bind(pod, "n1", ANNOTATIONS), Bound | Already)
    assert [each.query for each in api.asked if each.method == "POST"] == [
        {"timeout": "4000ms"},
        {"timeout": "1600ms"},
    ]


@given(st.floats(1, 600), st.floats(0.01, 0.99))
def test_it_does_so_before_another_scheduler_can_lead(lease_s: float, part: float) -> None:
    terms = LeaseTerms(lease_s=lease_s, renew_s=lease_s * part)
    assert terms.renew_s + terms.last_word_s < terms.lease_s


@pytest.mark.parametrize(
    "fault",
    [
        Drop(after_success=True),
        CutShort(),
        Hang(after_success=True),
        Refuse(500, after_success=True),
        Refuse(504, "Timeout", after_success=True),
        Late(0.45),
    ],
    ids=repr,
)
@HASTY
async def test_an_error_after_success_is_success(api: FakeApi, binder: Binder, fault: Fault) -> None:
    api.expect(fault, method="POST")
    assert await bound(binder, api) == Bound()
    assert stands(api).node == "n1"


@pytest.mark.parametrize("fault", [Refuse(429), Refuse(503), Refuse(500), Drop(), Hang()], ids=repr)
@HASTY
async def test_what_passes_is_tried_again(api: FakeApi, binder: Binder, fault: Fault) -> None:
    api.expect(fault, method="POST", times=2)
    assert await bound(binder, api) == Bound()
    assert stands(api).node == "n1"


@pytest.mark.slow
@HASTY
async def test_what_goes_on_failing_is_given_up_only_when_it_can_no_longer_happen(
    api: FakeApi, server: ApiServer
) -> None:
    api.expect(Late(0.75), method="POST")
    api.expect(Refuse(429), method="POST", times=1000)
    assert await bound(Binder(server, doubt_s=600, first_again_s=0.01), api) == Bound()


async def test_without_doubt_it_is_given_up_after_a_few_tries(api: FakeApi, binder: Binder) -> None:
    api.expect(Refuse(429, message="slow down"), method="POST", times=1000)
    outcome = await bound(binder, api)
    assert isinstance(outcome, Failed)
    assert outcome.may_retry
    assert "slow down" in outcome.why
    assert api.count("POST") == 4


async def test_a_second_binding_of_ours_is_the_first(api: FakeApi, binder: Binder) -> None:
    """Happens after an error response that hid a success."""
    pod = create_pod(api)
    written = {**ANNOTATIONS, "volcano.sh/vgpu-node": "n1"}
    assert await binder.bind(pod, "n1", written) == Bound()
    assert await binder.bind(pod, "n1", written) == Bound()


async def test_a_pod_that_another_one_bound_stays_there(api: FakeApi, binder: Binder) -> None:
    pod = create_pod(api)
    await binder.bind(pod, "n1", {**ANNOTATIONS, "by": "another"})
    assert await binder.bind(pod, "n2", ANNOTATIONS) == Already("n1")
    assert await binder.bind(pod, "n1", {"alloc.partage.dev/allocation": "ours"}) == Already("n1")
    assert stands(api).node == "n1"


async def test_a_pod_that_is_gone_or_going_is_lost(api: FakeApi, binder: Binder) -> None:
    pod = create_pod(api)
    api.objects.begin_deletion(f"{PODS}/p")
    assert await binder.bind(pod, "n1", ANNOTATIONS) == Lost("it is being deleted")
    api.objects.delete(f"{PODS}/p")
    assert await binder.bind(pod, "n1", ANNOTATIONS) == Lost("it is gone")
    create_pod(api)
    assert await binder.bind(pod, "n1", ANNOTATIONS) == Lost("it is gone, and another pod has its name")
    assert not stands(api).node


async def test_a_conflict_that_names_no_reason_is_no_binding(api: FakeApi, binder: Binder) -> None:
    api.expect(Refuse(409, "Conflict"), method="POST")
    outcome = await bound(binder, api)
    assert isinstance(outcome, Failed)
    assert outcome.may_retry


async def test_who_leads_no_more_sends_nothing(api: FakeApi, server: ApiServer) -> None:
    outcome = await Binder(server, may_bind=lambda: False).bind(create_pod(api), "n1", {})
    assert isinstance(outcome, Failed)
    assert not api.asked
