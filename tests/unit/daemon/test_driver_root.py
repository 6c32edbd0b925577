"""Advertiser, broker, plugins and doctor name the driver's location by the same setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_advertiser.settings import AdvertiserSettings
from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.plugin_host import host_settings
from partage_base.daemon.resolution import TomlFile, resolve
from partage_base.daemon.settings import CommonSettings
from partage_crishim.settings import CrishimSettings
from partage_isolation.settings import BrokerSettings
from partage_scheduler.settings import SchedulerSettings

DAEMONS: dict[str, type[CommonSettings]] = {
    "advertiser": AdvertiserSettings,
    "broker": BrokerSettings,
    "crishim": CrishimSettings,
    "scheduler": SchedulerSettings,
}


@pytest.mark.parametrize("daemon", DAEMONS)
@pytest.mark.parametrize("by_file", [True, False])
def test_one_line_of_the_file_or_one_variable_tells_all_of_them(daemon: str, *, by_file: bool) -> None:
    where = "/run/nvidia/driver"
    toml = TomlFile("partage.toml", {"common": {"driver_root": where}} if by_file else {})
    variables = {} if by_file else {"PARTAGE_DRIVER_ROOT": where}
    settings = resolve(DAEMONS[daemon], daemon, toml=toml, environment=variables, flags={}).settings
    assert settings.driver_root == Path(where)


@pytest.mark.parametrize("daemon", DAEMONS)
@pytest.mark.parametrize("where", ["run/nvidia", "/a/../etc"])
def test_a_place_that_is_none_is_refused(daemon: str, where: str) -> None:
    with pytest.raises(
        BadConfiguration, match=f"driver_root is '{where}' in PARTAGE_DRIVER_ROOT; allowed: an absolute path without"
    ):
        resolve(DAEMONS[daemon], daemon, toml=TomlFile(), environment={"PARTAGE_DRIVER_ROOT": where}, flags={})


def test_crishim_tells_its_plugins() -> None:
    settings = CrishimSettings(driver_root=Path("/run/nvidia/driver"))
    assert host_settings(settings, "crishim").driver_root == "/run/nvidia/driver"
