"""The command's messages for invalid configurations, and for valid ones."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click import Command
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.metrics import Metrics
from partage_base.keyring import KeyFolders, add_pair
from partage_base.kube import ApiServer
from partage_plugins.api.names import KeyId
from partage_scheduler.api.binder import Binder
from partage_scheduler.api.streams import Freshness
from partage_scheduler.authority import Authority
from partage_scheduler.cli import main
from partage_scheduler.core import new_core, plugins
from partage_scheduler.metrics import Figures
from partage_scheduler.occupancy import OccupancyMetrics
from partage_scheduler.sharepods.cli import main as sharepods
from support import kubeconfigs
from support.kube import access_to
from support.scheduler_stage import settings_below


def checked(root: Path, *flags: str) -> Result:
    return CliRunner().invoke(main, ["--root", str(root), "--check", *flags])


def keys_below(root: Path) -> KeyFolders:
    folders = KeyFolders.at_root(root)
    add_pair(folders, Ed25519PrivateKey.generate())
    return folders


@pytest.mark.slow
def test_what_a_start_needs_is_there(tmp_path: Path) -> None:
    keys_below(tmp_path)
    kubeconfig = kubeconfigs.write(tmp_path / "kubeconfig")
    done = checked(tmp_path, "--kubeconfig", str(kubeconfig))
    assert (done.exit_code, done.stderr) == (0, "partage-scheduler: nothing is wrong with its configuration\n")


def test_all_that_is_missing_is_told_at_once(tmp_path: Path) -> None:
    done = checked(tmp_path, "--kubeconfig", str(tmp_path / "none"))
    assert done.exit_code == 78
    assert "signing.d" in done.stderr
    assert "keys.d" in done.stderr
    assert str(tmp_path / "none") in done.stderr


def test_a_key_whose_public_half_is_not_there_is_told(tmp_path: Path) -> None:
    folders = keys_below(tmp_path)
    for file in folders.public.iterdir():
        file.unlink()
    done = checked(tmp_path, "--kubeconfig", str(kubeconfigs.write(tmp_path / "kubeconfig")))
    assert done.exit_code == 78
    assert "does not hold the public half" in done.stderr


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--renew-s", "20"), "two would lead at once"),
        (("--back-off-s", "20"), "most_back_off_s"),
        (("--in-flight", "0"), "in_flight"),
        (("--scheduler-name", "No"), "scheduler_name"),
        (("--score-weights", "gpu=-1"), "score_weights has 'gpu=-1'; allowed: NAME=NUMBER"),
        (("--score-weights", "gpu=1001"), "score_weights has 'gpu=1001'"),
        (("--score-weights", "gpu=nan"), "score_weights has 'gpu=nan'"),
        (("--score-weights", "gpu=1", "--score-weights", "gpu=2"), "names a plugin twice"),
    ],
)
def test_settings_that_can_not_be_are_refused(tmp_path: Path, flags: tuple[str, ...], why: str) -> None:
    done = checked(tmp_path, *flags)
    assert done.exit_code == 78
    assert why in done.stderr


@pytest.mark.parametrize("command", [main, sharepods], ids=["scheduler", "sharepods"])
def test_settings_and_plugins_are_checked_without_keys_and_without_a_cluster(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ["--root", str(tmp_path), "--kubeconfig", str(tmp_path / "none"), "--check-settings"]
    done = CliRunner().invoke(command, flags)
    assert (done.exit_code, done.output) == (0, "")
    monkeypatch.setenv("PARTAGE_GPU_POLICY", "fastest")
    done = CliRunner().invoke(command, flags)
    assert done.exit_code == 78
    assert "PARTAGE_GPU_POLICY: policy 'fastest' is not known; allowed: one of binpack, " in done.stderr


def test_a_check_finds_what_only_a_plugin_knows_to_be_wrong(tmp_path: Path) -> None:
    assert "score_weights names fpga; there are " in checked(tmp_path, "--score-weights", "fpga=2").stderr


def test_only_plugins_that_are_there_have_a_weight(tmp_path: Path) -> None:
    assert settings_below(tmp_path, score_weights=("gpu=2.5",)).weights == {"gpu": 2.5}
    with pytest.raises(BadConfiguration, match=r"score_weights names fpga; there are .*gpu, "):
        new_core(settings_below(tmp_path, score_weights=("fpga=2",)), plugins())


@pytest.mark.parametrize("reader", ["whole", "hami"])
def test_no_cards_are_reserved_by_a_word_that_a_dialect_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    """The reservation pods would be read as requests to us for the cards that they take from kubelet."""
    settings = settings_below(tmp_path, reserve_image="registry.example/pause:3.10")
    new_core(settings, plugins())
    monkeypatch.setenv("PARTAGE_NVIDIA_GPU", reader)
    with pytest.raises(BadConfiguration, match=r"reserve_image takes cards .* set PARTAGE_NVIDIA_GPU to kubelet"):
        new_core(settings, plugins())


def test_the_page_of_metrics_has_everything(tmp_path: Path) -> None:
    metrics, core = Metrics("scheduler"), new_core(settings_below(tmp_path), plugins())
    figures = Figures(metrics)
    figures.attempts["bound"] += 1
    figures.unfit(["gpu/share", "gpu/memory"])
    figures.unfit(["gpu/share", *(f"a-plugin/{number}" for number in range(200))])
    freshness = Freshness(["pods"], clock=iter([0.0, 1.5]).__next__)
    binder = Binder(ApiServer(access_to("http://127.0.0.1:1"), user_agent="test"))
    binder.in_flight = 3
    occupancy = OccupancyMetrics(core.cluster)
    asyncio.run(occupancy.count())
    figures.read(core, freshness, binder, Authority(None, freshness), lambda: KeyId("a" * 16), occupancy.families)
    page = metrics.page().decode()
    for line in (
        'partage_scheduler_attempts_total{result="bound"} 1.0',
        'partage_scheduler_unschedulable_total{reason="gpu/share"} 2.0',
        'partage_scheduler_unschedulable_total{reason="other"} 74.0',
        'partage_scheduler_signing_key_info{key="aaaaaaaaaaaaaaaa"} 1.0',
        'partage_scheduler_queue_pods{place="ready"} 0.0',
        'partage_scheduler_cache_age_seconds{kind="pods"} 1.5',
        "partage_scheduler_in_flight_pods 3.0",
        "partage_scheduler_leads 1.0",
        "partage_scheduler_cards 0.0",
    ):
        assert f"{line}\n" in page
