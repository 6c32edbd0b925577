"""How the container runtime is set up decides who can reach cards past their grants, and whether grants arrive."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_cli.doctor.containerd import ContainerdFacts, cdi, container_runtime, nvidia_runtime
from partage_cli.doctor.findings import Finding, Severity
from partage_cli.doctor.local_node import LocalNode
from partage_cli.doctor.runtimes import Runtime
from unit.cli.doctor.made import Made, only

CONFIG, NVIDIA = "etc/containerd/config.toml", "etc/nvidia-container-runtime/config.toml"
BEFORE_2 = """\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
enable_cdi = {cdi}
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "{handler}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{handler}.options]
BinaryName = "{program}"
"""


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def found(node: LocalNode) -> dict[str, Finding]:
    return {finding.check: finding for finding in container_runtime(node)}


@pytest.mark.parametrize(
    ("handler", "program"), [("nvidia", ""), ("nvidia-legacy", ""), ("mine", "/usr/bin/nvidia-container-runtime.cdi")]
)
def test_nvidias_runtime_for_every_pod_is_wrong_until_crishim_knows(made: Made, handler: str, program: str) -> None:
    made.write(CONFIG, BEFORE_2.format(cdi="true", handler=handler, program=program))
    assert found(made.node)["runtime-default"].status is Severity.WRONG
    assert found(made.told(nvidia_is_default=True))["runtime-default"].status is Severity.OK


def test_runc_for_every_pod_is_well(made: Made) -> None:
    made.write(CONFIG, BEFORE_2.format(cdi="true", handler="runc", program="/usr/bin/runc"))
    assert {each.status for each in found(made.node).values()} == {Severity.OK}


def test_no_file_means_containerds_defaults(made: Made) -> None:
    assert only(container_runtime(made.node)).status is Severity.OK


def test_an_import_beats_who_imports_it(made: Made) -> None:
    imports = 'imports = ["conf.d/*.toml"]\n' + BEFORE_2.format(cdi="true", handler="runc", program="")
    made.write(CONFIG, imports)
    made.write("etc/containerd/conf.d/99-nvidia.toml", BEFORE_2.format(cdi="false", handler="nvidia", program="x"))
    findings = found(made.node)
    assert findings["runtime-default"].status is Severity.WRONG
    assert findings["runtime-cdi"].status is Severity.WARNING
    assert findings["runtime-cdi"].looked_at[-1] == str(made.root / "etc/containerd/conf.d/99-nvidia.toml")


def test_files_that_import_each_other_come_to_an_end(made: Made) -> None:
    made.write(CONFIG, 'imports = ["/etc/containerd/*.toml"]')
    made.write("etc/containerd/b.toml", 'imports = ["config.toml", "../containerd/b.toml"]')
    files = [str(made.root / name) for name in (CONFIG, "etc/containerd/b.toml")]
    assert found(made.node)["runtime-default"].looked_at == tuple(files)


@pytest.mark.parametrize("pattern", ["a**", "[", "none.toml", "../../../../x", "**"])
def test_whatever_an_import_says_it_raises_nothing(made: Made, pattern: str) -> None:
    made.write(CONFIG, f'imports = ["{pattern}"]')
    assert "runtime-default" in found(made.node)


@pytest.mark.parametrize("text", ["= 1", "[plugins]\n'io.containerd.grpc.v1.cri' = 3", "imports = 7"])
def test_a_file_that_cannot_be_read_is_named(made: Made, text: str) -> None:
    made.write(CONFIG, text)
    finding = only(container_runtime(made.node))
    assert finding.status is Severity.UNKNOWN
    assert finding.found.startswith(f"{made.root / CONFIG}: ")


def test_other_runtimes_are_not_judged(made: Made) -> None:
    assert only(container_runtime(made.told(runtime=Path("/run/crio/crio.sock")))).status is Severity.UNKNOWN


@pytest.mark.parametrize(
    ("said", "version", "status"),
    [
        (None, "1.7.20", Severity.WARNING),
        (None, "v2.0.0", Severity.OK),
        (None, "", Severity.UNKNOWN),
        (True, "1.7.20", Severity.OK),
        (False, "2.3.4", Severity.WARNING),
    ],
)
def test_cdi_is_as_it_is_set_or_as_the_version_has_it(said: bool | None, version: str, status: Severity) -> None:  # noqa: FBT001
    assert cdi(ContainerdFacts(cdi=said, runtime=Runtime("containerd", version))).status is status


def test_cdi_folders_without_ours_are_wrong() -> None:
    assert cdi(ContainerdFacts(cdi=True, spec_folders=("/etc/cdi",))).status is Severity.WRONG
    assert cdi(ContainerdFacts(cdi=True, spec_folders=("/run/cdi/",))).status is Severity.OK


def test_unprivileged_containers_may_ask_by_variable_only_where_the_guard_blanks_it(made: Made) -> None:
    made.write(NVIDIA, "[nvidia-container-cli]\n")
    assert only(nvidia_runtime(made.node)).status is Severity.OK
    assert only(nvidia_runtime(made.told(guard="off"))).status is Severity.WRONG
    made.write(NVIDIA, "accept-nvidia-visible-devices-envvar-when-unprivileged = false\n")
    assert only(nvidia_runtime(made.told(guard="off"))).status is Severity.OK


def test_nvidias_file_that_cannot_be_read_is_named(made: Made) -> None:
    made.write(NVIDIA, "accept-nvidia-visible-devices-envvar-when-unprivileged = 1\n")
    assert only(nvidia_runtime(made.node)).status is Severity.UNKNOWN
