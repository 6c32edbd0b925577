"""Parameters of a control plane: its location, and its differences from the default. Pure.

A component's flags are one mapping, so that a setting replaces our flag instead of being added to it.
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
    """Differences of a control plane. Flags have no dashes: `{"max-requests-inflight": "800"}`."""

    controller_manager: bool = True
    """Without it there are no service accounts, the role `edit` is empty, and dead nodes get no taint: `README.md`."""
    kube_scheduler: bool = True
    partage: bool = True
    """Without it nothing that we deliver is created: no account, policy or namespace. Helm will install them."""
    pod_admission: bool = True
    """Without it pods may be written as before the policy was installed, to test what nodes reject by themselves."""
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
"""Only etcd and kube-apiserver, for thousands of fake nodes: without taints, and without throttling of clients."""


@dataclass(frozen=True)
class Place:
    """The location of a control plane: addresses, programs, files and identities."""

    addresses: Addresses
    programs: Programs
    run_folder: Path
    identities: Identities

    def program(self, name: str, flags: Flags, gates: Mapping[str, bool]) -> Program:
        """A component on the host, with its log in the run folder."""
        if gates:
            flags = {**flags, "feature-gates": ",".join(f"{gate}={str(on).lower()}" for gate, on in gates.items())}
        return Program(
            name=name,
            argv=(str(self.programs[name]), *(f"--{flag}={value}" for flag, value in flags.items())),
            log=self.run_folder / "logs" / f"{name}.log",
            run_folder=self.run_folder,
        )

    def kubeconfig(self, person: Person) -> str:
        """A kubeconfig for a component."""
        return str(self.identities.kubeconfig(self.identities.client(person), self.url(APISERVER_PORT)))

    def url(self, port: int) -> str:
        return f"https://{self.addresses.host}:{port}"
