"""Settings of the scheduler. All defaults are right for our Deployment.

Placement on cards is configured by the allocator's own variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from partage_base.daemon.settings import ADDRESS, Setting
from partage_base.keyring import KeyFolders
from partage_plugins.api import PluginName
from partage_scheduler.candidate import CandidateSettings

_KEYS = KeyFolders.at_root(Path("/"))
_WEIGHT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}=[0-9]{1,4}(\.[0-9]{1,6})?", re.ASCII)
_MOST_WEIGHT = 1000


@dataclass(frozen=True)
class CertificateFiles:
    certificate: Path
    """Our certificate, with the intermediate ones up to its authority."""
    key: Path
    callers: Path
    """The authority of callers' certificates."""

    @property
    def stamps(self) -> tuple[tuple[int, int], ...]:
        """Modification time and inode of each file, to detect changes."""
        found = [path.stat() for path in (self.certificate, self.key, self.callers)]
        return tuple((each.st_mtime_ns, each.st_ino) for each in found)


class SchedulerSettings(CandidateSettings, frozen=True, kw_only=True):
    """Settings of the daemon that places pods."""

    scheduler_name: Annotated[
        str,
        Meta(pattern=r"\A[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z"),
        Setting("Pods that name this one in schedulerName are placed; also the name of the Lease."),
    ] = "partage-scheduler"
    keys: Annotated[Path, Setting("Folder of the public keys that allocations on pods are believed by.")] = _KEYS.public
    signing_keys: Annotated[
        Path, Setting("Folder of the private key that allocations are signed with, and of what says which one.")
    ] = _KEYS.private
    in_flight: Annotated[
        int,
        Meta(ge=1, le=256),
        Setting(
            "Bindings under way at once, and a quarter more for namespaces with few; more than 32 cost an API server "
            "more than they bring."
        ),
    ] = 32
    back_off_s: Annotated[
        float, Meta(gt=0, le=60), Setting("Seconds for which a pod rests after its first failure; doubled with each.")
    ] = 1.0
    most_back_off_s: Annotated[float, Meta(gt=0, le=600), Setting("Seconds for which it rests at most.")] = 10.0
    gang_timeout_s: Annotated[
        float, Meta(ge=1, le=86400), Setting("Seconds after which a gang whose pods are not all there is told so.")
    ] = 300.0
    silent_after_s: Annotated[
        float,
        Meta(ge=5, le=3600),
        Setting("Seconds without a heartbeat after which a node takes no new pods with devices; four of them missed."),
    ] = 40.0
    claims: Annotated[
        bool,
        Setting(
            "Allocate claims on cards of the pool dra for pods placed here. Needs Kubernetes 1.34, and a DRA driver "
            "that publishes nothing."
        ),
    ] = False
    evict_lost: Annotated[
        bool, Setting("Evict pods from cards that are lost, through the Eviction API; they get an event anyway.")
    ] = False
    drain_paused: Annotated[
        bool, Setting("Evict pods with cards from nodes that are paused, or whose driver is being upgraded.")
    ] = False
    evict_after_s: Annotated[
        float, Meta(ge=0, le=86400), Setting("Seconds for which it must have been so before a pod is evicted.")
    ] = 300.0
    reserve_image: Annotated[
        str,
        Meta(max_length=512),
        Setting(
            "Image of pods that reserve cards of kubelet's for pods that wait; any that only waits. "
            "Empty, the default, is off."
        ),
    ] = ""
    reserve_quiet_s: Annotated[
        float,
        Meta(ge=1, le=86400),
        Setting("Seconds without a pod on a reserved card after which kubelet has it back."),
    ] = 60.0
    longest_grace_s: Annotated[
        int,
        Meta(ge=1, le=86400),
        Setting("Seconds that a pod which leaves for another is given at most; who is given longer is not waited for."),
    ] = 120
    elect: Annotated[bool, Setting("Lead only while holding the Lease; off only where no second one can ever run.")] = (
        True
    )
    plugin_deadline_s: Annotated[
        float, Meta(gt=0, le=600), Setting("A plugin that takes longer than this hangs, and ends the process.")
    ] = 30.0

    score_weights: Annotated[
        tuple[str, ...],
        Setting(
            "How much scores of plugins count in the sum, each NAME=NUMBER; 1 where a plugin is not named.",
            allowed="a plugin's name, =, and a number from 0 to 1000",
        ),
    ] = ()

    mirror: Annotated[
        bool,
        Setting("Write what a pod was given also as annotations of the system in whose words it asked."),
    ] = False

    extender_address: Annotated[
        str,
        Meta(pattern=ADDRESS),
        Setting(
            "Where kube-scheduler asks us as its extender; empty, the default, is off.",
            allowed="host:port, [IPv6 address]:port, or empty for off",
        ),
    ] = ""
    extender_certificate: Annotated[
        Path | None, Setting("Certificate that the extender's callers are shown; without one only loopback is served.")
    ] = None
    extender_key: Annotated[Path | None, Setting("Its private key.")] = None
    extender_callers: Annotated[
        Path | None, Setting("Authority of the certificates that callers must have: who is answered may bind pods.")
    ] = None
    extender_caller_names: Annotated[
        tuple[str, ...],
        Meta(min_length=1),
        Setting("Common names that callers' certificates may have, all others are refused; kube-scheduler's own."),
    ] = ("system:kube-scheduler",)
    extender_slice: Annotated[
        str,
        Meta(pattern=r"\A([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?\Z"),
        Setting(
            "EndpointSlice in our namespace that says where the leader is asked; empty, the default, is none.",
            allowed="a name as Kubernetes has them, or empty for none",
        ),
    ] = ""
    pod_ip: Annotated[
        str,
        Setting("Address by which others reach this process: status.podIP; needed for extender_slice."),
    ] = ""
    extender_nodes: Annotated[
        int,
        Meta(ge=0, le=100_000),
        Setting("Nodes, the best for a pod and its devices, that kube-scheduler may choose from; 0 leaves it all."),
    ] = 1

    extender_preempts: Annotated[
        bool,
        Setting(
            "Send pods of a lower priority away for one that lacks shares: kube-scheduler finds no victims for it."
        ),
    ] = True
    extender_answers_within_s: Annotated[
        float,
        Meta(ge=0.1, le=600),
        Setting("Seconds for which an answer waits for a binding; less than httpTimeout in kube-scheduler's file."),
    ] = 25.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.back_off_s > self.most_back_off_s:
            raise ValueError(f"back_off_s is {self.back_off_s:g} and most_back_off_s {self.most_back_off_s:g}")
        self._require_papers()
        self._require_address()
        self._require_weights()

    @property
    def weights(self) -> Mapping[PluginName, float]:
        """Configured score weights by plugin."""
        pairs = (each.partition("=") for each in self.score_weights)
        return {PluginName(name): float(number) for name, _, number in pairs}

    @property
    def certificate_files(self) -> CertificateFiles | None:
        """Certificates of the extender and its callers for mutual TLS; None if it is served on loopback only."""
        if self.extender_certificate is None or self.extender_key is None or self.extender_callers is None:
            return None
        return CertificateFiles(
            certificate=self.below_root(self.extender_certificate),
            key=self.below_root(self.extender_key),
            callers=self.below_root(self.extender_callers),
        )

    def _require_papers(self) -> None:
        given = (self.extender_certificate, self.extender_key, self.extender_callers)
        if any(given) and not all(given):
            raise ValueError("extender_certificate, extender_key and extender_callers are given together or not at all")
        if self.extender_address and not all(given) and not _is_loopback(self.extender_address):
            raise ValueError(
                f"extender_address is {self.extender_address}, and who is answered there may bind pods: give "
                "extender_certificate, extender_key and extender_callers, or an address of the loopback interface"
            )

    def _require_weights(self) -> None:
        for each in self.score_weights:
            if not _WEIGHT.fullmatch(each) or float(each.partition("=")[2]) > _MOST_WEIGHT:
                raise ValueError(f"score_weights has {each!r}; allowed: NAME=NUMBER, with a number from 0 to 1000")
        if len(self.weights) < len(self.score_weights):
            raise ValueError("score_weights names a plugin twice")

    def _require_address(self) -> None:
        if not self.extender_slice:
            return
        try:
            ip_address(self.pod_ip)
        except ValueError:
            raise ValueError(
                f"pod_ip is {self.pod_ip!r}, and extender_slice is to say where this one is asked: give the IP address"
            ) from None


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address.rpartition(":")[0].strip("[]")).is_loopback
    except ValueError:  # a host name, which may resolve to any address
        return False
