"""What a control plane is made from: where it is, and how it differs from the usual one. Pure.

A component's flags are one mapping, so a setting replaces a flag of ours instead of standing beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from rig.identity.identities import Identities
from rig.identity.people import Person
from rig.machine.addresses import Addresses
from rig.machine.components import Program

Flags = Mapping[str, str]
ETCD_PORT: Final = 2379
ETCD_PEER_PORT: Final = 2380
APISERVER_PORT: Final = 6443
CONTROLLER_MANAGER_PORT: Final = 10257
KUBE_SCHEDULER_PORT: Final = 10259


class Programs(Protocol):
    def __getitem__(self, name: str, /) -> Path: ...


@dataclass(frozen=True)
class ControlSettings:
    """How this control plane differs. Flags are without their dashes: `{"max-requests-inflight": "800"}`."""

    controller_manager: bool = True
    """Without it there are no service accounts, the role `edit` is empty, and dead nodes get no taint: `README.md`."""
    kube_scheduler: bool = True
    partage: bool = True
    """Without it there is nothing that we deliver: no account, no policy, no namespace. Helm is to bring it."""
    pod_admission: bool = True
    """Without it pods may be written as users could before it was installed: for what nodes refuse by themselves."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict[str, bool])
    etcd_flags: Flags = field(default_factory=dict[str, str])
    apiserver_flags: Flags = field(default_factory=dict[str, str])
    controller_manager_flags: Flags = field(default_factory=dict[str, str])
    kube_scheduler_flags: Flags = field(default_factory=dict[str, str])
    kube_scheduler_configuration: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of KubeSchedulerConfiguration, such as `extenders`; they replace ours of the same name."""


FOR_BENCHMARKS: Final = ControlSettings(
    controller_manager=False,
    kube_scheduler=False,
    apiserver_flags={
        "max-requests-inflight": "3000",
        "max-mutating-requests-inflight": "1000",
        "disable-admission-plugins": "ServiceAccount,TaintNodesByCondition",
    },
)
"""Only etcd and kube-apiserver, for thousands of made-up nodes: they are not tainted, and no client is told to wait."""


@dataclass(frozen=True)
class Place:
    """Where a control plane is: addresses, programs, files and identities."""

    addresses: Addresses
    programs: Programs
    run_folder: Path
    identities: Identities

    def program(self, name: str, flags: Flags, gates: Mapping[str, bool]) -> Program:
        """A component of the host, with its log in the run folder."""
        if gates:
            flags = {**flags, "feature-gates": ",".join(f"{gate}={str(on).lower()}" for gate, on in gates.items())}
        return Program(
            name=name,
            argv=(str(self.programs[name]), *(f"--{flag}={value}" for flag, value in flags.items())),
            log=self.run_folder / "logs" / f"{name}.log",
            run_folder=self.run_folder,
        )

    def kubeconfig(self, person: Person) -> str:
        """A file with which a component calls the API server."""
        return str(self.identities.kubeconfig(self.identities.client(person), self.url(APISERVER_PORT)))

    def url(self, port: int) -> str:
        return f"https://{self.addresses.host}:{port}"
