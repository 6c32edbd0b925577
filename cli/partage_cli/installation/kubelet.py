"""Kubelet on this host: its service, its files, its node name and its static pods' folder.

k3s runs kubelet in its own process, which shows none of kubelet's flags; the paths of its drop-ins and credentials are
fixed. RKE2 starts a kubelet with all of its flags, from a service of another name.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

import msgspec

from partage_cli.doctor.endpoint import EndpointFacts, Say, Setup
from partage_cli.doctor.kubelet import USUAL_CONFIG, config_files, configured, endpoint_facts, process_of
from partage_cli.doctor.local_node import LocalNode, Unseen, names_in, text_of
from partage_cli.doctor.units import Word, last_use
from partage_cli.installation.edits import INSTANCE_CONFIG, KubeletFiles
from partage_cli.installation.errors import UnfitNode
from partage_cli.installation.refusals import INSTEAD

_UNIT: Final = re.compile(r"/([^/\n]+\.service)(?:/|$)", re.MULTILINE)
_EXTRA_ARGS: Final = ("/etc/default/kubelet", "/etc/sysconfig/kubelet")
_K3S: Final = "/var/lib/rancher/k3s/agent"
_K3S_SERVICES: Final = {"k3s-server": "k3s.service", "k3s-agent": "k3s-agent.service"}
"""By the process name (comm)."""


_RKE2: Final = "rke2-"
"""Prefix of its services' names."""


class _StaticPods(msgspec.Struct, frozen=True):
    """The field of a KubeletConfiguration; null means none."""

    staticPodPath: str | None = None  # noqa: N815  as kubelet writes it


@dataclass(frozen=True)
class Kubelet:
    service: str
    program: str
    """Path of its executable."""
    node: str
    """The name under which it registers."""
    now: Setup
    """The configuration of the running kubelet."""
    next: Setup
    """The configuration of the next kubelet."""
    files: KubeletFiles
    kubeconfig: str
    """Empty: none is known."""
    static_pods: str
    """Empty: it has no such folder."""


def kubelet_of(node: LocalNode) -> Kubelet:
    """The running kubelet; raises `UnfitNode`."""
    found = process_of(node)
    if isinstance(found, Unseen):
        raise UnfitNode(f"cannot see kubelet's command line: {found}; ask as root, with the host's processes in sight")
    if found is None:
        return _of_k3s(node)
    number, words = found
    argv = [Word(each, "") for each in words]
    facts = endpoint_facts(node)
    service = _service_of(node, number)
    now, following = _both(facts, service)
    if service.startswith(_RKE2) and now.in_force is not None and now.in_force.by_flag:
        raise UnfitNode(
            "this RKE2 gives kubelet its runtime by a flag, which beats its drop-ins; update RKE2 to 1.32 or later"
        )
    config, folder = _value(argv, "config"), _value(argv, "config-dir")
    return Kubelet(
        service=service,
        program=words[0],
        node=(_value(argv, "hostname-override") or socket.gethostname()).strip().lower(),
        now=now,
        next=following,
        files=_files(node, config or USUAL_CONFIG, folder),
        kubeconfig=_value(argv, "kubeconfig"),
        static_pods=_static_pods(node, argv),
    )


def next_setup(node: LocalNode, service: str) -> Setup | None:
    """The configuration of the next kubelet, from its files."""
    if service in _K3S_SERVICES.values():
        return _k3s_setup(node)
    return _both(endpoint_facts(node), service)[1]


def _both(facts: EndpointFacts, service: str) -> tuple[Setup, Setup]:
    """The present and next configuration. RKE2's service is not kubelet's, and starts it with the same flags again."""
    now = facts.now or Setup()
    return now, facts.next if facts.next is not None and service == "kubelet.service" else now


def _service_of(node: LocalNode, number: int) -> str:
    """From its cgroup, which systemd names; else kubelet's usual service."""
    text = text_of(node.path(f"proc/{number}/cgroup"))
    found = None if isinstance(text, Unseen) else _UNIT.search(text)
    return found[1] if found else "kubelet.service"


def _files(node: LocalNode, config: str, folder: str) -> KubeletFiles:
    names = names_in(node.path(folder)) if folder else ()
    instance = node.path(str(PurePath(config).parent / INSTANCE_CONFIG))
    extra = [node.path(each) for each in _EXTRA_ARGS]
    return KubeletFiles(
        config=str(node.path(config)),
        config_exists=node.path(config).exists(),
        config_dir=str(node.path(folder)) if folder else "",
        drop_ins=() if isinstance(names, Unseen) else tuple(name for name in names if name.endswith(".conf")),
        instance_config=str(instance) if instance.exists() else "",
        extra_args=next((str(each) for each in extra if each.exists()), ""),
    )


def _static_pods(node: LocalNode, argv: list[Word]) -> str:
    """From kubelet's flag, or the last of its files that sets it."""
    if flag := _value(argv, "pod-manifest-path"):
        return flag
    found = ""
    for file in config_files(node, last_use(argv, "config"), last_use(argv, "config-dir"), []):
        found = _static_in(node.path(file)) or found
    return found


def _static_in(path: Path) -> str:
    text = text_of(path)
    if isinstance(text, Unseen):
        return ""
    try:
        return msgspec.yaml.decode(text, type=_StaticPods).staticPodPath or ""
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ""  # the endpoint is read from the same file, which reports the fault


def _value(argv: list[Word], flag: str) -> str:
    use = last_use(argv, flag)
    return "" if use is None else use.text


def _of_k3s(node: LocalNode) -> Kubelet:
    found = next(_processes_of_k3s(node), None)
    if found is None:
        raise UnfitNode(
            "no kubelet runs on this node, or it runs inside a program that is not known here, as that of MicroK8s: "
            f"start it, or {INSTEAD}"
        )
    name, words = found
    argv = [Word(each, "") for each in words]
    setup = _k3s_setup(node)
    if setup is None:
        raise UnfitNode(
            f"this k3s gives kubelet its runtime by a flag, which beats its drop-ins in {_K3S}/etc/kubelet.conf.d; "
            "update k3s to 1.32 or later"
        )
    return Kubelet(
        service=_K3S_SERVICES[name],
        program=words[0],
        node=(_value(argv, "node-name") or socket.gethostname()).strip().lower(),
        now=setup,
        next=setup,
        files=_files(node, f"{_K3S}/etc/kubelet.conf", f"{_K3S}/etc/kubelet.conf.d"),
        kubeconfig=f"{_K3S}/kubelet.kubeconfig",
        static_pods=f"{_K3S}/pod-manifests",
    )


def _processes_of_k3s(node: LocalNode) -> Iterator[tuple[str, list[str]]]:
    numbers = names_in(node.path("proc"))
    for number in () if isinstance(numbers, Unseen) else filter(str.isdecimal, numbers):
        name, line = (text_of(node.path(f"proc/{number}/{each}")) for each in ("comm", "cmdline"))
        if isinstance(name, str) and isinstance(line, str) and name.strip() in _K3S_SERVICES:
            yield name.strip(), line.removesuffix("\0").split("\0")


def _k3s_setup(node: LocalNode) -> Setup | None:
    """None if its drop-ins set no runtime: then its flag does, which is not visible."""
    folder = Word(f"{_K3S}/etc/kubelet.conf.d", "")
    says = [
        Say(str(node.path(file)), said)
        for file in config_files(node, None, folder, [])
        if isinstance(said := configured(node, file), str)
    ]
    return Setup(tuple(says)) if says else None
