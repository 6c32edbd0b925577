"""A node whose kubelet or containerd is older than what is tested is refused, and nothing on it is changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from partage_cli.installation.errors import UnfitNode
from partage_cli.installation.journal import kept
from partage_cli.installation.refusals import NodeInfo, too_old
from partage_cli.installation.switch import install, to_switch_on
from support import kubeconfigs
from support.fake_api import FakeApi
from unit.installation.made import a_host, kubeadm_node, put

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
