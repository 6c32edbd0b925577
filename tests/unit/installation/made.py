"""Hosts made of folders, whose services only record commands."""

from __future__ import annotations

import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from partage_cli.installation.conversion import Arm, Endpoint, Save, saved_files
from partage_cli.installation.host import Host
from partage_cli.installation.inspection import look
from partage_cli.installation.journal import Step, carry_out, kept, take_back
from partage_cli.installation.places import UNITS
from partage_cli.installation.services import Systemctl

CONTAINERD = "unix:///run/containerd/containerd.sock"
CRISHIM = "unix:///run/partage/crishim.sock"
KUBEADM = """\
[Service]
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""


class Services(Systemctl):
    """Records every command, which succeeds."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.active: set[str] = set()

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        verb, *units = [word for word in words if not word.startswith("-")]
        if verb == "is-active":
            return subprocess.CompletedProcess(words, 0 if units[0] in self.active else 3)
        if verb != "reset-failed":
            self.told.append(" ".join((verb, *units)))
        if verb in {"start", "restart"}:
            self.active |= set(units)
        elif verb == "stop":
            self.active -= set(units)
        return subprocess.CompletedProcess(words, 0)


def a_host(root: Path) -> tuple[Host, Services]:
    services = Services()
    return Host(root, services, lambda _: None), services


def put(root: Path, inside: str, text: str) -> Path:
    path = root / inside.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def kubeadm_node(
    root: Path, *, flags: str = "", extra: str | None = None, argv: str = "", comm: str = "kubelet"
) -> Path:
    """A kubelet as set up by kubeadm 1.36, process 77, with these flags in kubeadm's file."""
    put(root, "usr/lib/systemd/system/kubelet.service", "[Service]\nExecStart=/usr/bin/kubelet\n")
    put(root, "usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", KUBEADM)
    put(root, "var/lib/kubelet/kubeadm-flags.env", f'KUBELET_KUBEADM_ARGS="{flags}"\n')
    if extra is not None:
        put(root, "etc/default/kubelet", extra)
    words = ("/usr/bin/kubelet", "--config=/var/lib/kubelet/config.yaml", "--kubeconfig=/etc/kubernetes/kubelet.conf")
    put(root, "proc/77/comm", f"{comm}\n")
    put(root, "proc/77/cmdline", "\0".join((*words, *flags.split(), *argv.split())) + "\0")
    put(root, "proc/77/cgroup", "0::/system.slice/kubelet.service\n")
    put(root, "etc/os-release", 'ID=debian\nVERSION_ID="12"\n')
    return config(root, f"containerRuntimeEndpoint: {CONTAINERD}")


def config(root: Path, *lines: str) -> Path:
    head = ("apiVersion: kubelet.config.k8s.io/v1beta1", "kind: KubeletConfiguration", "# ours")
    text = "\n".join((*head, *lines, "staticPodPath: /etc/kubernetes/manifests")) + "\n"
    return put(root, "var/lib/kubelet/config.yaml", text)


def switch(host: Host) -> Sequence[Step[Any]]:
    """The switch's steps up to the confirmation."""
    host.path(UNITS).mkdir(parents=True, exist_ok=True)
    site, files = look(host), saved_files(host)
    return Save(), Arm(site, files, after_s=120), Endpoint(site, files)


@contextmanager
def switched_on(host: Host) -> Generator[None]:
    """Completes a switch, and undoes it at the end."""
    steps = switch(host)
    with kept(host.root) as journal:
        carry_out(steps, host, journal)
        yield
        take_back(steps, host, journal)
