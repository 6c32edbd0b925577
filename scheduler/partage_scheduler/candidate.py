"""Settings shared by daemons with leader election: access to the API server, and timing of the Lease."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from partage_base.daemon.api_server import Kubeconfig
from partage_base.daemon.settings import CommonSettings, Setting


class LeaseTerms(Struct, frozen=True, kw_only=True):
    """Timing of leader election; each value is well above the next."""

    lease_s: float = 15.0
    """Time since the last renewal after which another candidate may lead."""
    renew_s: float = 10.0
    """Time since its last renewal after which a leader steps down by itself."""
    retry_s: float = 2.0
    """Interval between renewals, and between other candidates' reads of the Lease."""

    @property
    def last_word_s(self) -> float:
        """Deadline of a leader's requests, so that none takes effect after the next leader has started."""
        return 0.8 * (self.lease_s - self.renew_s)


class CandidateSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of a daemon with leader election."""

    kubeconfig: Kubeconfig = None
    namespace: Annotated[
        str,
        Meta(pattern=r"\A[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z"),
        Setting("Namespace of partage, with the Leases that nodes have as heartbeats, and those that one leads by."),
    ] = "partage-system"
    lease_s: Annotated[
        float, Meta(ge=2, le=300), Setting("Seconds after the last renewal of the Lease until another one may lead.")
    ] = 15.0
    renew_s: Annotated[
        float, Meta(ge=1, le=300), Setting("Seconds after its last renewal when a leader gives up by itself.")
    ] = 10.0
    retry_s: Annotated[
        float, Meta(ge=0.1, le=60), Setting("Seconds between renewals, and between looks of others.")
    ] = 2.0

    def __post_init__(self) -> None:
        if not self.retry_s < self.renew_s < self.lease_s:
            raise ValueError(
                f"retry_s is {self.retry_s:g}, renew_s {self.renew_s:g} and lease_s {self.lease_s:g}; "
                "each must be less than the next, or two would lead at once"
            )

    @property
    def terms(self) -> LeaseTerms:
        return LeaseTerms(lease_s=self.lease_s, renew_s=self.renew_s, retry_s=self.retry_s)
