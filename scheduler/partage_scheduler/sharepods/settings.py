"""What the controller of SharePods can be told. Everything has a default that is right in our Deployment.

How requests are read is set by the dialects' own variables, the same as the scheduler's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from partage_base.daemon.settings import CommonSettings, Setting
from partage_scheduler.api.election import LeaseTerms


class SharePodSettings(CommonSettings, frozen=True, kw_only=True):
    """Of the daemon that makes pods for SharePods."""

    kubeconfig: Annotated[
        Path | None,
        Setting("File that says how to reach the API server; without it KUBECONFIG, then the pod's service account."),
    ] = None
    namespace: Annotated[
        str,
        Meta(pattern=r"\A[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z"),
        Setting("Namespace of partage, with the Lease partage-sharepods by which one of several controllers leads."),
    ] = "partage-system"
    scheduler_name: Annotated[
        str,
        Meta(pattern=r"\A[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z"),
        Setting("Who places the pods: the scheduler's own setting of this name."),
    ] = "partage-scheduler"
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
