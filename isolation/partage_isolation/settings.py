"""The broker's settings. The defaults suit a node with one containerd."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from partage_base.daemon.settings import CommonSettings, Setting
from partage_isolation.timeslices.policies import NAMES
from partage_plugins.api.names import CardId


class BrokerSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of the daemon that keeps containers within their limits."""

    library_folder: Annotated[
        Path, Setting("Folder of the preload library; each version lies in a folder of its own below.")
    ] = Path("/usr/local/lib/partage")
    runtime: Annotated[
        Path | None,
        Setting(
            "Socket of the container runtime, which is asked what runs; empty on a machine where only engines such as "
            "Docker run containers with shares."
        ),
    ] = Path("/run/containerd/containerd.sock")
    audit_every_s: Annotated[
        float,
        Meta(ge=0.1, le=60),
        Setting("Seconds between looks at what cards and the runtime really have; freed memory is believed then."),
    ] = 1.0
    context_in_limit: Annotated[
        bool,
        Setting("Count what contexts take into a container's memory; without it each process takes that on top."),
    ] = True
    on_violation: Annotated[
        Literal["stop", "report"],
        Setting("What to do with a container whose limits are found not to be in force."),
    ] = "stop"
    policy: Annotated[
        Literal["virtual-time", "caps", "gemini", "free-run"],
        Setting("Who gets a card's time: by shares and limits, in three ways, or not metered."),
    ] = "virtual-time"
    policies: Annotated[
        tuple[str, ...],
        Setting("The policy of single cards.", allowed="a list of CARD=POLICY, CARD the id of a card"),
    ] = ()
    quantum_ms: Annotated[
        float,
        Meta(ge=1, le=1000),
        Setting("How long a time slice lasts while others want the card: shorter is smoother, longer loses less."),
    ] = 32.0
    gemini_quota_ms: Annotated[
        float, Meta(ge=1, le=60_000), Setting("Under `gemini`: how long a token lasts at first. KubeShare sets 300.")
    ] = 250.0
    gemini_least_ms: Annotated[
        float, Meta(ge=1, le=60_000), Setting("Under `gemini`: how long a token lasts at least. KubeShare sets 20.")
    ] = 100.0
    gemini_window_ms: Annotated[
        float, Meta(ge=1000, le=60_000), Setting("Under `gemini`: over how long shares and limits are counted.")
    ] = 10_000.0
    moving_longest_wait_s: Annotated[
        float,
        Meta(ge=1, le=3600),
        Setting("How long a container whose memory was moved to the host waits for its turn at most."),
    ] = 30.0
    compute_on_broker_loss: Annotated[
        Literal["free-run", "closed"],
        Setting("What holds for launches once the broker has been away for a second: all go, or none."),
    ] = "free-run"
    goes_first: Annotated[
        bool, Setting("Answer before all ordinary programs of the node, where the kernel lets the broker.")
    ] = True
    nvml_deadline_s: Annotated[
        float, Meta(gt=0, le=30), Setting("Seconds that the driver may take to tell who uses a card.")
    ] = 2.0

    def __post_init__(self) -> None:
        for said in self.policies:
            card, _, policy = said.partition("=")
            if not card or policy not in NAMES:
                raise ValueError(f"policies has {said!r}; allowed: CARD=POLICY, the policy one of {', '.join(NAMES)}")
        if len(self.policy_of_cards) < len(self.policies):
            raise ValueError("policies names a card twice")
        if not self.gemini_least_ms <= self.gemini_quota_ms <= self.gemini_window_ms:
            least, most = self.gemini_least_ms, self.gemini_window_ms
            raise ValueError(
                f"gemini_quota_ms is {self.gemini_quota_ms:g}; allowed: "
                f"from gemini_least_ms ({least:g}) to gemini_window_ms ({most:g})"
            )

    @property
    def policy_of_cards(self) -> Mapping[CardId, str]:
        return {CardId(card): policy for card, _, policy in (said.partition("=") for said in self.policies)}
