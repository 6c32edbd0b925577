"""Settings of the SharePod controller. Each default is right for our Deployment.

How requests are read is set by the dialects' own variables, the same as the scheduler's.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from partage_base.daemon.settings import Setting
from partage_scheduler.candidate import CandidateSettings


class SharePodSettings(CandidateSettings, frozen=True, kw_only=True):
    """Of the daemon that makes pods for SharePods."""

    scheduler_name: Annotated[
        str,
        Meta(pattern=r"\A[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z"),
        Setting("Who places the pods: the scheduler's own setting of this name."),
    ] = "partage-scheduler"
