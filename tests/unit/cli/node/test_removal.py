"""What partage leaves in the cluster when it is removed from a node."""

from __future__ import annotations

import fcntl
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from partage_cli.installation.errors import PodsStay
from partage_cli.node.removal import end_advertiser
from partage_cli.node.rest import RestState, look
from partage_plugins.api.places import ADVERTISER_LOCK
from unit.installation.made import a_host

UNIT = "partage-advertiser.service"


@pytest.fixture
def look_now(tmp_path: Path) -> Callable[[], RestState]:
    return functools.partial(look, tmp_path)


@pytest.fixture
def advertiser(tmp_path: Path) -> Iterator[None]:
    """Holds the lock of an advertiser in a pod."""
    lock = tmp_path / ADVERTISER_LOCK
    lock.parent.mkdir(parents=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def test_an_advertiser_that_is_a_unit_is_ended(tmp_path: Path, look_now: Callable[[], RestState]) -> None:
    host, services = a_host(tmp_path)
    services.active.add(UNIT)
    end_advertiser(host, look_now, 0)
    assert services.told == [f"stop {UNIT}"]


@pytest.mark.usefixtures("advertiser")
def test_one_that_stays_would_write_again_so_it_is_told_who_it_is(
    tmp_path: Path, look_now: Callable[[], RestState]
) -> None:
    host, services = a_host(tmp_path)
    with pytest.raises(PodsStay, match="DaemonSet partage-advertiser"):
        end_advertiser(host, look_now, 0)
    assert services.told == []
