"""The container runtime's configuration decides who can reach cards without grants, and whether grants work."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_base.cri import RuntimeConfig
from partage_cli.doctor.containerd import cdi, container_runtime, default_runtime, nvidia_runtime, restore
from partage_cli.doctor.findings import About, Severity
from partage_cli.doctor.runtimes import Runtime
from unit.cli.doctor.made import Made, only

NVIDIA = "etc/nvidia-container-runtime/config.toml"
ABOUT = About("x")


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def run_by(handler: str, program: str) -> RuntimeConfig:
    return RuntimeConfig(default_handler=handler, programs={handler: program})


def test_nvidias_runtime_for_every_pod_is_wrong_where_crishim_does_not_guard() -> None:
    config = run_by("mine", "/usr/bin/nvidia-container-runtime.cdi")
    assert default_runtime(ABOUT, config, guarded=False).status is Severity.WRONG
    assert default_runtime(ABOUT, config, guarded=True).status is Severity.OK


def test_runc_for_every_pod_is_well() -> None:
    assert default_runtime(ABOUT, run_by("runc", "/usr/bin/runc"), guarded=False).status is Severity.OK


def test_what_the_runtime_does_not_say_is_not_judged() -> None:
    assert default_runtime(ABOUT, RuntimeConfig(), guarded=True).status is Severity.UNKNOWN
    assert cdi(ABOUT, RuntimeConfig()).status is Severity.UNKNOWN


def test_a_runtime_that_gives_no_answer_is_told_with_its_socket(made: Made) -> None:
    finding = only(container_runtime(made.told(runtime=Path("/run/crio/crio.sock"))))
    assert (finding.status, finding.found) == (Severity.UNKNOWN, f"{made.root}/run/crio/crio.sock: is not there")


@pytest.mark.parametrize(
    ("config", "status"),
    [
        (RuntimeConfig(cdi=False), Severity.WARNING),
        (RuntimeConfig(cdi=True, spec_folders=("/etc/cdi",)), Severity.WARNING),
        (RuntimeConfig(cdi=True, spec_folders=("/etc/cdi", "/run/cdi/")), Severity.OK),
    ],
)
def test_cdi_is_well_where_the_runtime_looks_into_our_folder(config: RuntimeConfig, status: Severity) -> None:
    assert cdi(ABOUT, config).status is status


@pytest.mark.parametrize(
    ("restores", "version", "status"),
    [
        (True, "v2.3.4", Severity.WRONG),
        (False, "v2.3.4", Severity.OK),
        (None, "v2.2.6", Severity.WARNING),
        (None, "v2.1.0", Severity.WARNING),
        (None, "2.0.5", Severity.OK),
        (None, "1.6.20~ds1", Severity.OK),
        (None, "v2.4.0", Severity.OK),
        (None, "", Severity.UNKNOWN),
    ],
)
def test_a_runtime_that_may_make_containers_from_checkpoints_is_told(
    restores: bool | None,  # noqa: FBT001
    version: str,
    status: Severity,
) -> None:
    assert restore(ABOUT, RuntimeConfig(restores=restores), Runtime("containerd", version)).status is status


def test_a_runtime_that_is_not_containerd_is_not_judged_by_its_version() -> None:
    assert restore(ABOUT, RuntimeConfig(), Runtime("cri-o", "2.2.0")).status is Severity.UNKNOWN


def test_unprivileged_containers_may_ask_by_variable_only_where_the_guard_blanks_it(made: Made) -> None:
    made.write(NVIDIA, "[nvidia-container-cli]\n")
    assert only(nvidia_runtime(made.node)).status is Severity.OK
    assert only(nvidia_runtime(made.told(guard="off"))).status is Severity.WRONG
    made.write(NVIDIA, "accept-nvidia-visible-devices-envvar-when-unprivileged = false\n")
    assert only(nvidia_runtime(made.told(guard="off"))).status is Severity.OK


def test_nvidias_file_that_cannot_be_read_is_named(made: Made) -> None:
    made.write(NVIDIA, "accept-nvidia-visible-devices-envvar-when-unprivileged = 1\n")
    assert only(nvidia_runtime(made.node)).status is Severity.UNKNOWN
