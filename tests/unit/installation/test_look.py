"""Which nodes can be switched, by which files; others are refused with what to do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from partage_cli.installation.conversion import saved_files
from partage_cli.installation.errors import UnfitNode
from partage_cli.installation.inspection import Site, look
from partage_cli.installation.journal import kept
from partage_cli.installation.refusals import NodeInfo, SwitchFacts, managed, refusals, too_old
from partage_cli.installation.switch import install, to_switch_on
from support import kubeconfigs
from support.fake_api import FakeApi
from unit.installation.made import CONTAINERD, CRISHIM, a_host, kubeadm_node, put, switched_on

RUNTIME = "/run/containerd/containerd.sock"


def facts(**other: object) -> SwitchFacts:
    usual: dict[str, object] = {
        "endpoint": CONTAINERD,
        "endpoint_next": CONTAINERD,
        "crishim": "/run/partage/crishim.sock",
        "runtime": RUNTIME,
        "runtime_is_said": False,
    }
    return SwitchFacts(**{**usual, **other})  # type: ignore[arg-type]  # as they are above


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"endpoint": CRISHIM, "endpoint_next": CRISHIM}, "not by this command"),
        ({"endpoint_next": CRISHIM}, "restart it"),
        ({"endpoint": "unix:///var/run/crio/crio.sock", "endpoint_next": "/run/crio/crio.sock"}, "use containerd"),
        ({"endpoint": "/run/shim.sock", "endpoint_next": "/run/shim.sock"}, "another proxy"),
        ({"endpoint": "/run/cri-dockerd.sock", "endpoint_next": "/run/cri-dockerd.sock"}, "use containerd"),
        ({"read_only": ("/etc",)}, "/etc is read-only; where it stays so, share its cards by DRA"),
        ({"library_folder": "/usr/local/lib/partage"}, 'library_folder = "/opt/partage-library" under [broker]'),
        ({"has_machine": True}, "partage down --purge"),
    ],
)
def test_what_stands_in_the_way_is_said(other: dict[str, object], words: str) -> None:
    assert words in "; ".join(refusals(facts(**other)))


def test_nothing_stands_in_the_way_of_containerd_nor_of_a_socket_that_the_operator_names() -> None:
    assert not list(refusals(facts()))
    own = "/run/own/containerd.sock"
    assert not list(refusals(facts(endpoint=own, endpoint_next=own, runtime=own, runtime_is_said=True)))


@pytest.mark.parametrize("system", ["bottlerocket", "cos", "talos"])
def test_managed_systems_are_told_what_to_use_instead(system: str, tmp_path: Path) -> None:
    assert "DRA" in managed(system)
    put(tmp_path, "etc/os-release", f"ID={system}\n")
    with pytest.raises(UnfitNode, match="DRA"):
        look(a_host(tmp_path)[0])


def test_gke_is_known_by_its_kubelet_on_an_ordinary_system(tmp_path: Path) -> None:
    kubeadm_node(tmp_path)
    put(tmp_path, "proc/77/cmdline", "/home/kubernetes/bin/kubelet\0--config=/home/kubernetes/kubelet-config.yaml\0")
    with pytest.raises(UnfitNode, match=r"GKE .* DRA"):
        look(a_host(tmp_path)[0])


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("etc/systemd/system", "/etc/systemd/system is read-only"),
        ("usr", "library_folder = "),
        ("var/lib/kubelet", "config.yaml, by which kubelet is told its runtime, is read-only: share its cards by DRA"),
    ],
)
def test_places_that_nothing_can_be_written_to_are_named(
    tmp_path: Path, place: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeadm_node(tmp_path)
    put(tmp_path, "etc/systemd/system/kubelet.target", "")
    real = os.statvfs

    def statvfs(path: Path) -> object:
        is_there = path.is_relative_to(tmp_path / place)
        return SimpleNamespace(f_flag=os.ST_RDONLY) if is_there else real(path)

    monkeypatch.setattr(os, "statvfs", statvfs)
    with pytest.raises(UnfitNode) as no:
        look(a_host(tmp_path)[0])
    assert words in str(no.value)


def test_a_node_of_kubeadm_is_known_by_its_kubelet(tmp_path: Path) -> None:
    kubeadm_node(tmp_path, argv="--hostname-override=N1")
    assert look(a_host(tmp_path)[0]) == Site(
        node="n1",
        kubelet="kubelet.service",
        runtime=RUNTIME,
        kubeconfig="/etc/kubernetes/kubelet.conf",
        static_pods="/etc/kubernetes/manifests",
    )


def test_a_host_without_kubelet_is_no_node(tmp_path: Path) -> None:
    with pytest.raises(UnfitNode, match="no kubelet runs"):
        look(a_host(tmp_path)[0])


def k3s(root: Path, *, defaults: str) -> None:
    put(root, "proc/9/comm", "k3s-agent\n")
    put(root, "proc/9/cmdline", "/usr/local/bin/k3s\0agent\0--node-name=edge\0")
    put(root, "var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf", defaults)


def test_k3s_is_switched_by_its_drop_ins(tmp_path: Path) -> None:
    k3s(tmp_path, defaults="containerRuntimeEndpoint: unix:///run/k3s/containerd/containerd.sock\n")
    host, services = a_host(tmp_path)
    site = look(host)
    assert (site.kubelet, site.node, site.runtime) == (
        "k3s-agent.service",
        "edge",
        "/run/k3s/containerd/containerd.sock",
    )
    files = saved_files(host)
    assert [each.how for each in files] == ["dropin"]
    with switched_on(host):
        assert CRISHIM in Path(files[0].path).read_text()
    assert not Path(files[0].path).exists()
    assert services.told.count("restart k3s-agent.service") == 2


def test_a_k3s_that_gives_the_runtime_by_flag_is_refused(tmp_path: Path) -> None:
    k3s(tmp_path, defaults="maxPods: 7\n")
    with pytest.raises(UnfitNode, match="update k3s"):
        look(a_host(tmp_path)[0])


def rke2(root: Path, *words: str) -> None:
    put(root, "proc/9/comm", "kubelet\n")
    put(root, "proc/9/cgroup", "0::/system.slice/rke2-agent.service\n")
    put(root, "proc/9/cmdline", "\0".join(("/var/lib/rancher/rke2/data/v1/bin/kubelet", *words)) + "\0")


def test_rke2_is_switched_by_the_drop_ins_of_its_kubelet(tmp_path: Path) -> None:
    folder = "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d"
    said = "containerRuntimeEndpoint: unix:///run/k3s/containerd/containerd.sock\n"
    put(tmp_path, f"{folder}/00-rke2-defaults.conf", said)
    rke2(tmp_path, f"--config-dir={folder}")
    host, services = a_host(tmp_path)
    assert [each.how for each in saved_files(host)] == ["dropin"]
    with switched_on(host):
        assert services.told.count("restart rke2-agent.service") == 1


def test_an_rke2_that_gives_the_runtime_by_flag_is_refused(tmp_path: Path) -> None:
    rke2(tmp_path, "--container-runtime-endpoint=unix:///run/k3s/containerd/containerd.sock")
    with pytest.raises(UnfitNode, match="update RKE2"):
        look(a_host(tmp_path)[0])


NEW = NodeInfo("v1.34.0", "containerd://1.6.20~ds1")


@pytest.mark.parametrize(
    ("kubelet", "runtime", "said"),
    [
        (NEW.kubelet_version, NEW.container_runtime_version, []),
        ("v1.37.2", "containerd://2.4.2", []),
        ("v1.36.1-gke.1000", "containerd://v2.1.4-k3s1", []),
        ("v2.0.0", "containerd://10.0", []),
        ("", "", []),
        ("unknown", "containerd://unknown", []),
        ("v1.37.2", "cri-o://1.4.0", []),
        ("v1.33.7", "containerd://1.7.35", ["this node has kubelet v1.33.7, and the oldest Kubernetes"]),
        ("v1.9.0", "containerd://2.4.2", ["this node has kubelet v1.9.0"]),
        ("v1.34.0", "containerd://1.5.18", ["this node has containerd 1.5.18, and the oldest containerd"]),
        ("v1.33.7+k3s1", "containerd://v1.5.9-k3s1", ["kubelet v1.33.7+k3s1", "containerd v1.5.9-k3s1"]),
    ],
)
def test_what_is_too_old_is_said_with_what_to_do(kubelet: str, runtime: str, said: Sequence[str]) -> None:
    found = list(too_old(NodeInfo(kubelet, runtime)))
    assert [words in line for words, line in zip(said, found, strict=True)] == [True] * len(said)
    assert all(line.endswith("upgrade the node first") for line in found)


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({"kubeletVersion": "v1.33.7", "containerRuntimeVersion": "containerd://2.4.2"}, r"kubelet v1\.33\.7"),
        ({"kubeletVersion": "v1.34.0", "containerRuntimeVersion": "containerd://1.5.9"}, r"containerd 1\.5\.9"),
    ],
)
async def test_a_node_that_is_too_old_is_left_as_it_is(tmp_path: Path, info: dict[str, str], words: str) -> None:
    async with FakeApi() as api:
        api.objects.create("/api/v1/nodes", {"metadata": {"name": "n1"}, "status": {"nodeInfo": info}})
        node_of(tmp_path, api)
        tree = put(tmp_path, "bundle/VERSION", "1.0\n").parent
        host, services = a_host(tmp_path)
        with kept(tmp_path) as journal:
            before = files_of(tmp_path)
            with pytest.raises(UnfitNode, match=words):
                await asyncio.to_thread(install, host, journal, tree)
            with pytest.raises(UnfitNode, match=words):
                await asyncio.to_thread(to_switch_on, host, after_s=120)
        assert services.told == []
        assert files_of(tmp_path) == before


async def test_a_node_that_is_new_enough_is_looked_at_further(tmp_path: Path) -> None:
    info = {"kubeletVersion": NEW.kubelet_version, "containerRuntimeVersion": NEW.container_runtime_version}
    async with FakeApi() as api:
        api.objects.create("/api/v1/nodes", {"metadata": {"name": "n1"}, "status": {"nodeInfo": info}})
        node_of(tmp_path, api)
        assert await asyncio.to_thread(to_switch_on, a_host(tmp_path)[0], after_s=120)
        assert api.count("GET") == 1


def node_of(root: Path, api: FakeApi) -> None:
    kubeadm_node(root, argv="--hostname-override=n1")
    kubeconfigs.write(put(root, "etc/kubernetes/kubelet.conf", ""), server=api.url)


def files_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
