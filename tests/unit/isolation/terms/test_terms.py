"""On which cards time is metered, according to the settings."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import fields

from partage_isolation.broker import terms_of
from partage_isolation.settings import BrokerSettings
from partage_isolation.timeslices.durations import MS
from partage_isolation.timeslices.policies import DEFAULT, NAMES, Gemini
from partage_isolation.wire.packets import Loss
from partage_plugins.api.names import CardId

ONE, OTHER = CardId("GPU-one"), CardId("GPU-other")
ALL, MEMORY = ("memory", "share", "limit"), ("memory",)


def test_every_policy_can_be_said_and_no_other() -> None:
    (policy,) = (each.type for each in fields(BrokerSettings) if each.name == "policy")
    assert set(get_args(get_args(policy)[0])) == set(NAMES)
    assert BrokerSettings().policy == DEFAULT


def test_by_default_time_is_metered_in_turns_of_32_ms_and_goes_on_without_a_broker() -> None:
    terms = terms_of(BrokerSettings())
    assert terms.are_for(ONE)
    assert terms.enforced == terms.enforced_on([ONE, OTHER]) == ALL
    assert terms.timing.quantum_ns == 32 * MS
    assert (terms.timeslice.loss, terms.timeslice.loss_after, terms.timeslice.idle_us) == (
        Loss.FREE,
        1_000_000_000,
        500,
    )


def test_closed_is_closed() -> None:
    assert terms_of(BrokerSettings(compute_on_broker_loss="closed")).timeslice.loss == Loss.CLOSED


def test_a_card_has_its_own_policy() -> None:
    terms = terms_of(BrokerSettings(policies=(f"{OTHER}=free-run",)))
    assert (terms.are_for(ONE), terms.are_for(OTHER)) == (True, False)
    assert (terms.enforced_on([ONE]), terms.enforced_on([ONE, OTHER]), terms.enforced) == (ALL, MEMORY, MEMORY)


@pytest.mark.parametrize("policy", sorted(NAMES))
def test_whoever_meters_enforces(policy: str) -> None:
    terms = terms_of(BrokerSettings(policy="free-run", policies=(f"{ONE}={policy}",)))
    assert terms.enforced_on([ONE]) == (MEMORY if policy == "free-run" else ALL)
    assert terms.enforced_on([OTHER]) == MEMORY


@pytest.mark.parametrize(
    ("policies", "why"),
    [
        (("caps",), "policies has 'caps'; allowed: CARD=POLICY, the policy one of virtual-time, "),
        (("=caps",), "policies has '=caps'"),
        (("GPU-one=fast",), "policies has 'GPU-one=fast'"),
        (("GPU-one=caps", "GPU-one=gemini"), "policies names a card twice"),
    ],
)
def test_what_is_no_policy_of_a_card_is_a_mistake(policies: tuple[str, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        BrokerSettings(policies=policies)


def test_geminis_parameters_are_as_published_and_can_be_kubeshares() -> None:
    published = terms_of(BrokerSettings(policy="gemini")).policy_of(ONE)
    assert published == Gemini(quota_ns=250 * MS, least_ns=100 * MS, window_ns=10_000 * MS)
    kubeshare = BrokerSettings(policies=(f"{ONE}=gemini",), gemini_quota_ms=300, gemini_least_ms=20)
    assert terms_of(kubeshare).policy_of(ONE) == Gemini(quota_ns=300 * MS, least_ns=20 * MS, window_ns=10_000 * MS)


@pytest.mark.parametrize(("least_ms", "quota_ms"), [(300, 250), (100, 20_000)])
def test_a_quota_below_the_least_or_above_the_window_is_a_mistake(least_ms: float, quota_ms: float) -> None:
    with pytest.raises(ValueError, match=r"gemini_quota_ms is [0-9]+; allowed: from gemini_least_ms "):
        BrokerSettings(gemini_least_ms=least_ms, gemini_quota_ms=quota_ms)
