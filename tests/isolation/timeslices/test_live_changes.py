"""Shares and limits that are lowered while a container runs, and which cards are metered at all."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from isolation.timeslices.flood import flooders
from isolation.timeslices.members import Member
from partage_isolation.wire import packets as wire
from partage_isolation.wire.messages import CardHeld, LimitsSet, SetLimits
from partage_isolation.wire.packets import Loss, Result, What
from partage_simgpu.description import card_uuid
from rig.patience import patience_s
from support.isolated import Contained, Isolated, isolated
from support.simgpu import NODE, card

pytestmark = pytest.mark.slow
MIB = 1 << 20
CARDS = (card("t4", memory_mib=8192, reserved_mib=100, context_mib=64),) * 2


def lower(container: Contained, **said: int | None) -> LimitsSet:
    question = SetLimits(key=container.key, card=container.question.grants[0].card, **said)
    return container.place.broker.client.set_limits(question)


def held(container: Contained) -> CardHeld:
    return container.told().cards[0]


def milli(container: Contained) -> tuple[int, int, int, int]:
    now = held(container)
    return now.share_milli, now.limit_milli, now.granted_share_milli, now.granted_limit_milli


def test_share_and_limit_are_lowered_and_given_back_and_memory_stays(place: Isolated) -> None:
    container = place.prepare(512 * MIB, share=500, limit=800)
    assert milli(container) == (500, 800, 500, 800)
    done = lower(container, share_milli=300, limit_milli=400)
    assert (done.share_milli, done.limit_milli, done.memory_bytes) == (300, 400, 512 * MIB)
    assert milli(container) == (300, 400, 500, 800)
    lower(container, memory_bytes=100 * MIB)
    assert (milli(container), held(container).limit_bytes) == ((300, 400, 500, 800), 100 * MIB)
    lower(container, share_milli=None, limit_milli=None)
    assert (milli(container), held(container).limit_bytes) == ((500, 800, 500, 800), 100 * MIB)
    lower(container, memory_bytes=None)
    assert held(container).limit_bytes == 512 * MIB


@pytest.fixture(scope="module")
def mixed() -> Iterator[Isolated]:
    """The second card is not metered."""
    settings = {
        "policy": "caps",
        "policies": f"{card_uuid(NODE, 1)}=free-run",
        "compute_on_broker_loss": "closed",
        "metrics_address": "127.0.0.1:9471",
    }
    with isolated(cards=CARDS, settings=settings) as place:
        yield place


def test_a_card_of_its_own_policy_is_not_metered(mixed: Isolated) -> None:
    container = mixed.prepare([MIB, MIB], share=300)
    with Member(container.socket) as one:
        assert (one.join(0), one.terms.loss) == (Result.OK, Loss.CLOSED)
        assert one.join(1) == Result.NO
        one.say(What.WANT, 1, wire.TimeSlice())
        assert one.client.lend(0)
        assert not one.line(1).is_open
    assert [card.time is None for card in container.told().cards] == [False, True]


def test_metrics_have_what_was_wanted_and_got_by_window(mixed: Isolated) -> None:
    container = mixed.prepare(share=200)
    with flooders(container) as (alone,):
        alone.more_turns(3)
        with urlopen("http://127.0.0.1:9471/metrics", timeout=patience_s()) as page:
            lines = page.read().decode().splitlines()
    mine = f'pod="{container.question.pod.name}"'
    got = [line for line in lines if line.startswith("partage_container_compute_got_ratio{") and mine in line]
    assert {line.partition('window="')[2].partition('"')[0] for line in got} == {"1s", "10s", "60s"}
    timeslices = next(line for line in lines if line.startswith("partage_container_leases_total{") and mine in line)
    assert float(timeslices.split()[-1]) >= 3
    share = next(line for line in lines if line.startswith("partage_container_compute_share_ratio{") and mine in line)
    assert float(share.split()[-1]) == 0.2
