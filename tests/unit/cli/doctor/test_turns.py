"""The policy of time slices is what the broker reports; files for its next start are checked in place."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from partage_cli.doctor.findings import Severity
from partage_cli.doctor.turns import PAGE, turns
from partage_isolation.library import pages
from partage_isolation.wire.messages import BrokerLoss, BrokerReport
from support.broker import FakeBroker, told
from unit.cli.doctor.made import Made, only


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def dividing(
    policy: str, *, of_card: str | None = None, loss: BrokerLoss = "free-run", library: str = ""
) -> BrokerReport:
    """The report of a broker with one card, card 0."""
    answer = told(library=library)
    (card,) = answer.cards
    return replace(answer, policy=policy, compute_on_broker_loss=loss, cards=(replace(card, policy=of_card or policy),))


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (dividing("virtual-time"), "by virtual-time; while the broker is away launches go on unmetered"),
        (dividing("caps", loss="closed"), "by caps; while the broker is away launches wait, and then fail"),
        (
            dividing("virtual-time", of_card="free-run"),
            "by virtual-time, but free-run on card 0; while the broker is away launches go on unmetered",
        ),
        (dividing("free-run"), "by free-run; parts of a card's time are refused"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_it_says_by_which_policy_and_what_holds_without_a_broker(made: Made, answer: BrokerReport, found: str) -> None:
    with FakeBroker(made.root, answer):
        finding = only(turns(made.node))
    assert (finding.status, finding.found) == (Severity.OK, found)


def test_a_card_whose_index_nobody_knows_is_named_by_its_id(made: Made) -> None:
    answer = dividing("virtual-time", of_card="caps")
    (card,) = answer.cards
    with FakeBroker(made.root, replace(answer, cards=(replace(card, index=None),))):
        assert f"but caps on {card.card};" in only(turns(made.node)).found


def test_the_policy_that_is_there_for_comparison_is_warned_of(made: Made) -> None:
    with FakeBroker(made.root, dividing("virtual-time", of_card="gemini")):
        finding = only(turns(made.node))
    assert finding.status is Severity.WARNING
    assert "gemini on card 0" in finding.found


def test_a_broker_that_knows_nothing_of_time_is_older_than_this(made: Made) -> None:
    with FakeBroker(made.root, told()):
        finding = only(turns(made.node))
    assert finding.status is Severity.WARNING
    assert "older version" in finding.found


def test_without_a_broker_nobody_knows(made: Made) -> None:
    assert only(turns(made.node)).status is Severity.UNKNOWN


def test_a_broker_that_could_not_start_again_is_wrong_before_it_has_to(made: Made) -> None:
    helper = made.write(f"usr/local/lib/partage/{PAGE}")
    library = made.root / "usr/local/lib/partage/0.1.0"
    with FakeBroker(made.root, dividing("virtual-time", library=str(library))):
        assert only(turns(made.node)).status is Severity.OK
        helper.unlink()
        _, finding = turns(made.node)
    assert (finding.status, finding.looked_at) == (Severity.WRONG, (str(helper),))
    assert "--install-library" in finding.advice


def test_it_looks_for_what_the_broker_loads() -> None:
    assert PAGE == pages.PAGE
