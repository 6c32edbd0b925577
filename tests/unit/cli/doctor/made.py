"""Nodes made of folders, as the doctor finds them; a node is healthy until a test breaks something."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from partage_base.keyring import KeyFolders, add_pair
from partage_cli.doctor.findings import Finding
from partage_cli.doctor.local_node import LocalNode
from partage_crishim.settings import CrishimSettings
from partage_plugins.api import GPU, Card, GpuPart, Inventory
from partage_plugins.api.inventory import Ready
from partage_plugins.codecs import encode_inventory
from unit.gpu_node.nodes import CARDS, FIRST, SECOND, information

CRISHIM: Final = "unix:///run/partage/crishim.sock"
CONTAINERD: Final = "unix:///run/containerd/containerd.sock"
VERSION: Final = "580.65.06"
CONFIG: Final = "var/lib/kubelet/config.yaml"
FLAGS: Final = "var/lib/kubelet/kubeadm-flags.env"
UNIT: Final = "usr/lib/systemd/system/kubelet.service"
DROPIN: Final = "usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
KUBEADM: Final = """\
# as kubeadm has it
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""
NVRM: Final = "NVRM version: NVIDIA UNIX {}  {}  Sun Jul 27 07:13:47 UTC 2025\nGCC version:  gcc version 12.2.0\n"


@dataclass(frozen=True)
class Made:
    """A folder that stands for a node's `/`."""

    root: Path

    @property
    def node(self) -> LocalNode:
        """The node as the command creates it."""
        return LocalNode(root=self.root, name="n1")

    def told(self, **settings: object) -> LocalNode:
        """The node with other settings of crishim."""
        return LocalNode(root=self.root, name="n1", crishim=replace(CrishimSettings(), **settings))

    def write(self, path: str, text: str = "") -> Path:
        """Writes a file and creates its folders."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def with_kubeadm(self, *, config: str = "", flags: str = "") -> Made:
        """Adds the files of a node that kubeadm has set up."""
        self.write(UNIT, "[Unit]\nDescription=kubelet\n[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n")
        self.write(DROPIN, KUBEADM)
        self.write(CONFIG, f"kind: KubeletConfiguration\nsyncFrequency: 0s\n{config}\n")
        self.write(FLAGS, f'KUBELET_KUBEADM_ARGS="{flags}"\n')
        return self

    def with_kubelet(self, *flags: str, pid: int = 812) -> Made:
        """Adds a kubelet process."""
        self.write(f"proc/{pid}/comm", "kubelet\n")
        self.write(f"proc/{pid}/cmdline", "\0".join(["/usr/bin/kubelet", *flags]) + "\0")
        return self

    def with_driver(self, version: str = VERSION, *, libraries: str = VERSION, cards: int = 2) -> Made:
        """Adds a driver with cards."""
        self.write("proc/driver/nvidia/version", NVRM.format("x86_64 Kernel Module", version))
        for minor in range(cards):
            self.write(f"proc/driver/nvidia/gpus/0000:1{minor}:00.0/information", information(minor, "x", "GPU-x"))
        for name in ("nvidiactl", "nvidia-uvm", *(f"nvidia{minor}" for minor in range(cards))):
            (self.root / "dev").mkdir(exist_ok=True)
            (self.root / "dev" / name).symlink_to("/dev/null")
        for library in ("libcuda", "libnvidia-ml"):
            self.write(f"usr/lib64/{library}.so.{libraries}")
        return self

    def with_cards(self, *cards: Card) -> Made:
        """Adds the advertiser's inventory."""
        self.write("run/partage/inventory.json", inventory(*cards))
        return self

    def with_key(self) -> Made:
        """Adds a public key, whose private half is elsewhere."""
        folders = KeyFolders.at_root(self.root)
        private = add_pair(folders, Ed25519PrivateKey.generate()).private
        private.unlink()
        return self

    @contextmanager
    def advertiser(self) -> Generator[None]:
        """Holds the advertiser's lock, as if it ran."""
        with self.write("run/partage/advertiser/lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def seen(self, path: str, age_s: float) -> Made:
        """Makes a liveness file this old."""
        file = self.root / path
        if not file.exists():
            self.write(path)
        at = time.time() - age_s
        os.utime(file, (at, at))
        return self


def inventory(*cards: Card) -> str:
    """An inventory of these cards, or of two healthy ones."""
    part = GpuPart(driver=VERSION, cuda="13.0", cards=cards or CARDS)
    return encode_inventory(Inventory(ready=Ready(crishim=True), kinds={GPU.name: part})).decode()


def only(findings: Iterable[Finding]) -> Finding:
    """The only finding."""
    (finding,) = findings
    return finding


__all__ = ["CARDS", "FIRST", "SECOND", "Made", "inventory", "only"]
