"""Each alert fires on its own fault and no other alert does, with real daemons and a real Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from rig.client.wait import until
from support.chain_stage import Chain
from support.faults import FAULTS
from support.observing import alerts
from support.prometheus import MOST_S, Prometheus, prometheus

pytestmark = pytest.mark.extended("waits for every alert; promtool tries them all in seconds")
LONGEST_S = 3 * MOST_S
"""One alert's input may have to last for a minute before another one's."""


@pytest.fixture(scope="module")
def there(lasting_stage: Chain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with prometheus(tmp_path_factory.mktemp("alerts") / "prometheus", lasting_stage.targets()) as found:
        yield found


def wait_firing(there: Prometheus, alert: str | None, **labels: str) -> None:
    """Wait until that alert fires with these labels and no other alert fires."""

    def why_not() -> str | None:
        firing = there.firing
        if firing.keys() != ({alert} if alert else set()):
            return f"firing: {firing}"
        wrong = [each for of in firing.values() for each in of if not labels.items() <= each.items()]
        return f"firing: {wrong}" if wrong else None

    until(f"{alert or 'nothing'} fires", why_not, LONGEST_S, every_s=0.5)


def test_every_alert_but_one_has_its_fault() -> None:
    assert alerts().keys() - FAULTS.keys() == {"PartageMetricsCut"}


@pytest.mark.parametrize("alert", FAULTS)
def test_an_alert_fires_on_its_fault_alone_and_ends_with_it(chain: Chain, there: Prometheus, alert: str) -> None:
    wait_firing(there, None)
    with FAULTS[alert](chain) as labels:
        began = time.monotonic()
        wait_firing(there, alert, **labels)
        assert there.fired(time.monotonic() - began) == {alert}
    wait_firing(there, None)
