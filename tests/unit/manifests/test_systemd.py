"""The units are accepted by systemd, and set what the daemons rely on."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

from partage_advertiser.settings import AdvertiserSettings
from partage_base.daemon.settings import CommonSettings
from partage_cli.installation.places import CURRENT, VERSION_BACK
from partage_crishim.settings import CrishimSettings
from partage_isolation.settings import BrokerSettings
from partage_isolation.urgency import ENDS_AFTER_US, PRIORITY
from partage_plugins.api import NodeName
from partage_plugins.host import HostSettings

UNITS = Path(__file__).parents[3] / "manifests/systemd"


def unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNITS / name)
    return parser


DAEMONS = ("advertiser", "broker", "crishim")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="this machine has no systemd to ask")
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    """The checker requires the programs to exist, so the test creates them elsewhere."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in DAEMONS:
        (programs / f"partage-{name}").symlink_to("/bin/true")
    for unit_file in UNITS.iterdir():
        text = unit_file.read_text().replace("/opt/partage/current/bin", str(programs))
        (tmp_path / unit_file.name).write_text(text)
    units = [str(tmp_path / each.name) for each in UNITS.iterdir()]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", DAEMONS)
def test_it_runs_what_the_link_to_the_version_in_force_names(name: str) -> None:
    service = unit(f"partage-{name}.service")["Service"]
    assert service["ExecStart"] == f"/{CURRENT}/bin/partage-{name}"


@pytest.mark.parametrize("name", DAEMONS)
def test_its_end_is_told_to_the_way_back_and_no_sandbox_holds_that(name: str) -> None:
    """Neither its failure nor its absence changes anything."""
    told = unit(f"partage-{name}.service")["Service"]["ExecStopPost"]
    assert told == f"-+/bin/sh -c 'test ! -e /{VERSION_BACK} || exec /bin/sh /{VERSION_BACK} %N'"


def test_the_socket_is_where_crishim_would_listen_itself_and_its_owners_alone() -> None:
    socket = unit("partage-crishim.socket")["Socket"]
    assert socket["ListenStream"] == str(CrishimSettings().listen)
    assert socket["SocketMode"] == "0600"


@pytest.mark.parametrize(
    ("name", "settings"),
    [("crishim", CrishimSettings()), ("advertiser", AdvertiserSettings()), ("broker", BrokerSettings())],
)
def test_a_stop_has_more_time_than_the_daemon_takes(name: str, settings: CommonSettings) -> None:
    service = unit(f"partage-{name}.service")["Service"]
    assert int(service["TimeoutStopSec"].removesuffix("s")) > settings.stop_deadline_s


@pytest.mark.parametrize(("name", "ends_for_good"), [("crishim", None), ("advertiser", "78"), ("broker", "78")])
def test_it_is_restarted_always_and_keeps_what_is_in_run(name: str, ends_for_good: str | None) -> None:
    """Another start does not fix a wrong configuration; crishim is always restarted."""
    service = unit(f"partage-{name}.service")["Service"]
    assert (service["Restart"], service.get("RestartPreventExitStatus")) == ("always", ends_for_good)
    assert (service["RuntimeDirectory"], service["RuntimeDirectoryPreserve"]) == ("partage", "yes")
    assert unit(f"partage-{name}.service")["Unit"]["StartLimitIntervalSec"] == "0"


def test_a_start_of_crishim_may_wait_for_its_plugins() -> None:
    allowed_s = int(unit("partage-crishim.service")["Service"]["TimeoutStartSec"].removesuffix("s"))
    assert allowed_s > HostSettings(node=NodeName("n1")).start_deadline_s


@pytest.mark.parametrize("name", ["advertiser", "broker"])
def test_who_asks_the_driver_reaches_one_that_is_loaded_later(name: str) -> None:
    """With these, systemd denies all devices except those whose numbers it knows when the unit starts."""
    service = unit(f"partage-{name}.service")["Service"]
    assert not {"PrivateDevices", "ProtectClock", "DeviceAllow", "DevicePolicy"} & set(service)


def test_the_broker_goes_before_programs_and_sees_all_processes() -> None:
    """Programs wait for it; and it identifies them by their process ids, maps and mounts."""
    service = unit("partage-broker.service")["Service"]
    assert (service["Nice"], service["CPUWeight"], service["LimitRTPRIO"]) == ("-10", "1000", str(PRIORITY))
    assert service["LimitRTTIME"] == f"{ENDS_AFTER_US // 1_000_000}s"
    assert "RestrictRealtime" not in service
    assert "CAP_SYS_PTRACE" in service["CapabilityBoundingSet"].split()
    assert not {"ProtectProc", "ProcSubset", "PrivatePIDs", "PrivateUsers"} & set(service)


def test_memory_can_be_lent_before_the_first_pod_starts() -> None:
    assert unit("partage-broker.service")["Unit"]["Before"] == "kubelet.service"


def test_the_library_can_be_installed_where_the_broker_looks_for_it() -> None:
    service = unit("partage-broker.service")["Service"]
    assert service["ExecStartPre"].endswith("partage-broker --install-library")
    assert BrokerSettings().library_folder.is_relative_to(service["ReadWritePaths"])
