"""For every way to set kubelet's runtime endpoint, the doctor finds the effective one, and says what to change."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_cli.doctor.findings import Finding, Severity
from partage_cli.doctor.kubelet import endpoint
from unit.cli.doctor.made import CONFIG, CONTAINERD, CRISHIM, DROPIN, FLAGS, UNIT, Made, only

SET = f"containerRuntimeEndpoint: {CRISHIM}"
FLAG = f"--container-runtime-endpoint={CONTAINERD}"
TO_CRISHIM = f"--container-runtime-endpoint={CRISHIM}"
HOSTILE = st.binary(max_size=80) | st.text("\0-=:[]{}&*!'\"\\$\n abc", max_size=80).map(str.encode)
PROCESS = ("--config=/var/lib/kubelet/config.yaml",)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def found(made: Made) -> Finding:
    return only(endpoint(made.node))


def test_the_file_that_the_process_was_started_with_holds(made: Made) -> None:
    finding = found(made.with_kubeadm(config=SET).with_kubelet(*PROCESS))
    assert finding.status is Severity.OK
    assert finding.found == f"kubelet speaks to crishim, as {made.root / CONFIG} says"


def test_a_flag_beats_the_file_and_the_advice_names_the_file_that_the_flag_is_in(made: Made) -> None:
    finding = found(made.with_kubeadm(config=SET, flags=f"--v=2 {FLAG}").with_kubelet(*PROCESS, FLAG))
    assert finding.status is Severity.WRONG
    assert finding.advice == (
        f"take --container-runtime-endpoint out of {made.root / FLAGS}: a flag beats {made.root / CONFIG}, "
        "which names crishim, then systemctl restart kubelet"
    )


def test_a_flag_alone_is_to_be_changed_where_it_is(made: Made) -> None:
    finding = found(made.with_kubeadm(flags=FLAG).with_kubelet(*PROCESS, FLAG))
    assert finding.advice.startswith(f"set --container-runtime-endpoint={CRISHIM} in {made.root / FLAGS}, then")


def test_where_nothing_is_said_the_default_holds_and_the_file_is_where_to_say_it(made: Made) -> None:
    finding = found(made.with_kubeadm().with_kubelet(*PROCESS))
    assert finding.found == f"kubelet speaks to {CONTAINERD} and not to crishim, as kubelet's default says"
    assert finding.advice == f"set {SET} in {made.root / CONFIG}, then systemctl restart kubelet"


def test_files_that_are_right_want_a_restart_of_a_process_that_is_not(made: Made) -> None:
    finding = found(made.with_kubeadm(config=SET).with_kubelet(*PROCESS, FLAG))
    assert finding.status is Severity.WRONG
    assert finding.advice == "systemctl restart kubelet: its files already say crishim"


def test_a_process_that_is_right_and_files_that_are_not_is_a_warning_of_the_next_start(made: Made) -> None:
    made.with_kubeadm(config=SET).with_kubelet(*PROCESS).write("etc/default/kubelet", f"KUBELET_EXTRA_ARGS={FLAG}")
    finding = found(made)
    assert finding.status is Severity.WARNING
    assert "until its next start" in finding.found
    assert str(made.root / "etc/default/kubelet") in finding.advice


def test_of_several_flag_files_the_one_that_comes_last_on_the_command_line_holds(made: Made) -> None:
    made.with_kubeadm(flags=FLAG).write(
        "etc/default/kubelet", f"KUBELET_EXTRA_ARGS=--container-runtime-endpoint={CRISHIM}"
    )
    assert found(made).found == "kubelet is set to speak to crishim and does not run"


def test_drop_ins_of_the_configuration_beat_it_in_the_order_of_their_names(made: Made) -> None:
    argv = (*PROCESS, "--config-dir=/etc/kubelet.d")
    made.with_kubelet(*argv).write(CONFIG, f"containerRuntimeEndpoint: {CONTAINERD}")
    made.write("etc/kubelet.d/20-x.conf", SET)
    made.write("etc/kubelet.d/10-x.conf", f"containerRuntimeEndpoint: {CONTAINERD}")
    made.write("etc/kubelet.d/30-x.yaml", f"containerRuntimeEndpoint: {CONTAINERD}")
    assert found(made).found == f"kubelet speaks to crishim, as {made.root / 'etc/kubelet.d/20-x.conf'} says"


def test_a_unit_of_the_administrator_stands_before_the_packages_and_so_do_its_drop_ins(made: Made) -> None:
    made.with_kubeadm(flags=FLAG)
    made.write("etc/systemd/system/kubelet.service", f"[Service]\nExecStart=/kubelet {FLAG}")
    made.write(
        "etc/systemd/system/kubelet.service.d/10-kubeadm.conf",
        f"[Service]\nExecStart=\nExecStart=/kubelet --container-runtime-endpoint={CRISHIM}",
    )
    assert found(made).found == "kubelet is set to speak to crishim and does not run"


def test_a_drop_in_that_leads_nowhere_is_masked(made: Made) -> None:
    made.with_kubeadm(flags=FLAG).with_kubelet(f"--container-runtime-endpoint={CRISHIM}")
    (made.root / DROPIN).unlink()
    (made.root / DROPIN).symlink_to("/dev/null")
    finding = found(made)
    assert finding.status is Severity.WARNING  # the unit without its drop-in sets nothing, so the default would hold
    assert "kubelet's default" in finding.found


@pytest.mark.parametrize("path", ["etc/default/kubelet", "etc/sysconfig/kubelet", FLAGS])
def test_without_a_unit_the_usual_files_of_flags_are_looked_at(made: Made, path: str) -> None:
    made.write(path, f"ARGS='--x {FLAG}'")
    finding = found(made)
    assert finding.status is Severity.WRONG
    assert finding.looked_at == (f"at its next start: {made.root / path}: {CONTAINERD}",)


@pytest.mark.parametrize(
    "same", ["unix:///run/partage/crishim.sock", "/run/partage/crishim.sock", "unix:///var/run/partage/crishim.sock"]
)
def test_a_socket_has_several_names(made: Made, same: str) -> None:
    assert found(made.with_kubelet(f"--container-runtime-endpoint={same}")).status is Severity.OK


def test_crishims_socket_is_where_its_settings_say(made: Made) -> None:
    made.with_kubelet("--container-runtime-endpoint=unix:///run/other.sock")
    assert only(endpoint(made.told(listen=Path("/run/other.sock")))).status is Severity.OK
    assert found(made).status is Severity.WRONG


def test_a_configuration_that_cannot_be_read_leaves_it_open_unless_a_flag_decides(made: Made) -> None:
    made.with_kubelet(*PROCESS).write(CONFIG, "containerRuntimeEndpoint: [not, a, text]")
    finding = found(made)
    assert finding.status is Severity.UNKNOWN
    assert str(made.root / CONFIG) in finding.found
    assert found(made.with_kubelet(*PROCESS, FLAG)).status is Severity.WRONG


def test_a_configuration_that_the_process_names_and_that_is_gone_is_told(made: Made) -> None:
    assert found(made.with_kubelet(*PROCESS)).found == f"cannot read {made.root / CONFIG}: is not there"


def test_where_no_kubelet_is_nothing_is_claimed(made: Made) -> None:
    assert found(made).status is Severity.UNKNOWN


def test_a_process_that_only_calls_itself_so_is_none(made: Made) -> None:
    made.write("proc/5/comm", "kubelet\n")
    made.write("proc/5/cmdline", "/usr/bin/vim\0--container-runtime-endpoint=x\0")
    made.write("proc/6/comm", "kubelet\n")
    made.write("proc/6/cmdline", "")  # a zombie
    assert found(made).status is Severity.UNKNOWN


@pytest.mark.parametrize("kind", ["pipe", "folder", "endless"])
def test_files_that_are_none_hold_nobody_up(made: Made, kind: str) -> None:
    made.with_kubelet(*PROCESS)
    file = made.root / CONFIG
    file.parent.mkdir(parents=True)
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "folder":
            file.mkdir()
        case _:
            file.symlink_to("/dev/zero")
    assert found(made).status is Severity.UNKNOWN


@pytest.mark.slow
@given(st.lists(st.sampled_from([CRISHIM, CONTAINERD]), min_size=1, max_size=6), st.booleans())
def test_however_often_it_is_set_the_last_place_holds(endpoints: list[str], as_flags: bool) -> None:  # noqa: FBT001
    with TemporaryDirectory() as folder:
        made = Made(Path(folder))
        if as_flags:
            made.with_kubelet(*(f"--container-runtime-endpoint={each}" for each in endpoints))
        else:
            made.with_kubelet("--config-dir=/d")
            for number, each in enumerate(endpoints):
                made.write(f"d/{number}.conf", f'{{"containerRuntimeEndpoint": "{each}"}}')
        assert (found(made).status is Severity.OK) == (endpoints[-1] == CRISHIM)


@pytest.mark.slow
@given(st.sampled_from([CONFIG, FLAGS, UNIT, DROPIN, "proc/812/cmdline"]), HOSTILE)
def test_whatever_stands_in_a_file_there_is_one_finding(path: str, content: bytes) -> None:
    with TemporaryDirectory() as folder:
        made = Made(Path(folder)).with_kubeadm(config=SET).with_kubelet(*PROCESS)
        (made.root / path).write_bytes(content)
        assert found(made).check == "kubelet-endpoint"
