"""How components are started: on one address, with TLS, and with what a setting replaces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rig.control.plane import ControlPlane
from rig.control.settings import FOR_BENCHMARKS, ControlSettings
from rig.machine.addresses import SERVICES, Addresses

ADDRESSES = Addresses(3)
HOST = str(ADDRESSES.host)
NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
PROGRAMS = {name: Path("/programs") / name for name in NAMES}


def plane(tmp_path: Path, settings: ControlSettings | None = None) -> ControlPlane:
    return ControlPlane(ADDRESSES, PROGRAMS, tmp_path, settings)


def flags(control: ControlPlane, name: str) -> dict[str, str]:
    (argv,) = [component.program.argv for component in control.components if component.name == name]
    assert argv[0] == f"/programs/{name}"
    pairs = [flag.removeprefix("--").split("=", 1) for flag in argv[1:]]
    assert len(pairs) == len({pair[0] for pair in pairs}), "no flag is said twice"
    return {pair[0]: pair[1] for pair in pairs}


def test_every_address_is_the_rigs_own(tmp_path: Path) -> None:
    for component in plane(tmp_path).components:
        said = " ".join(component.program.argv)
        assert HOST in said, component.name
        assert not [wrong for wrong in ("0.0.0.0", "[::]", "127.0.0.1", "localhost", "http://") if wrong in said]  # noqa: S104


@pytest.mark.parametrize("name", NAMES[1:])
def test_what_serves_is_bound_to_that_address(tmp_path: Path, name: str) -> None:
    assert flags(plane(tmp_path), name)["bind-address"] == HOST


def test_etcd_asks_everyone_for_a_certificate_of_its_own_authority(tmp_path: Path) -> None:
    control = plane(tmp_path)
    said = flags(control, "etcd")
    for prefix in ("", "peer-"):
        assert said[f"{prefix}client-cert-auth"] == "true"
        assert said[f"{prefix}trusted-ca-file"] == str(control.identities.etcd_ca)


def test_the_api_server_authorizes_as_on_a_real_cluster(tmp_path: Path) -> None:
    said = flags(plane(tmp_path), "kube-apiserver")
    assert said["authorization-mode"] == "Node,RBAC"
    assert said["enable-admission-plugins"] == "NodeRestriction"
    assert said["anonymous-auth"] == "false"
    assert said["service-cluster-ip-range"] == str(SERVICES)
    assert "disable-admission-plugins" not in said


def test_files_that_flags_name_are_there(tmp_path: Path) -> None:
    for component in plane(tmp_path).components:
        for flag, value in flags(plane(tmp_path), component.name).items():
            if value.startswith(str(tmp_path)) and not flag.endswith("-dir"):
                assert Path(value).is_file(), flag


def test_a_setting_replaces_a_flag_of_ours(tmp_path: Path) -> None:
    settings = ControlSettings(
        etcd_flags={"log-level": "debug"},
        apiserver_flags={"anonymous-auth": "true", "max-requests-inflight": "9"},
        controller_manager_flags={"node-monitor-grace-period": "5s"},
        kube_scheduler_flags={"v": "4"},
    )
    control = plane(tmp_path, settings)
    assert flags(control, "etcd")["log-level"] == "debug"
    assert flags(control, "kube-apiserver")["anonymous-auth"] == "true"
    assert flags(control, "kube-apiserver")["max-requests-inflight"] == "9"
    assert flags(control, "kube-controller-manager")["node-monitor-grace-period"] == "5s"
    assert flags(control, "kube-scheduler")["v"] == "4"


def test_feature_gates_are_for_all_kubernetes_components(tmp_path: Path) -> None:
    control = plane(tmp_path, ControlSettings(feature_gates={"A": True, "B": False}))
    assert [flags(control, name).get("feature-gates") for name in NAMES] == [None, *["A=true,B=false"] * 3]


def test_kube_scheduler_has_the_configuration_that_was_asked_for(tmp_path: Path) -> None:
    extenders = [{"urlPrefix": "https://198.18.48.1:8080", "filterVerb": "filter"}]
    settings = ControlSettings(kube_scheduler_configuration={"extenders": extenders})
    file = Path(flags(plane(tmp_path, settings), "kube-scheduler")["config"])
    written = json.loads(file.read_text())
    assert written["extenders"] == extenders
    assert written["kind"] == "KubeSchedulerConfiguration"
    assert Path(written["clientConnection"]["kubeconfig"]).is_file()


def test_without_a_controller_manager_pods_need_no_service_account(tmp_path: Path) -> None:
    control = plane(tmp_path, ControlSettings(controller_manager=False))
    assert [component.name for component in control.components] == ["etcd", "kube-apiserver", "kube-scheduler"]
    assert flags(control, "kube-apiserver")["disable-admission-plugins"] == "ServiceAccount"


def test_benchmarks_have_etcd_and_the_api_server(tmp_path: Path) -> None:
    control = plane(tmp_path, FOR_BENCHMARKS)
    assert [component.name for component in control.components] == ["etcd", "kube-apiserver"]
    assert flags(control, "kube-apiserver")["disable-admission-plugins"] == "ServiceAccount,TaintNodesByCondition"


def test_a_component_sees_nothing_of_the_machines_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("KUBECONFIG", "/elsewhere/config")
    for component in plane(tmp_path).components:
        assert not {"HTTPS_PROXY", "KUBECONFIG"} & component.program.environment().keys()
