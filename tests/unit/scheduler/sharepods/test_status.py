"""What a SharePod says of its pod, which is what its user looks at."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from partage_scheduler.sharepods.objects import OwnedPod
from partage_scheduler.sharepods.report import status_of
from unit.scheduler.sharepods.test_cards import pod, share

NOW = "2026-01-01T00:00:00Z"
SYNCED = "SharePod synced successfully"


def waiting(**condition: Any) -> OwnedPod:
    of_pod = pod("01")
    status = {**of_pod.status, "conditions": [{"type": "PodScheduled", "status": "False", **condition}]}
    return msgspec.structs.replace(of_pod, status=status)


@pytest.mark.parametrize(
    ("of_pod", "message"),
    [
        (pod("01"), SYNCED),
        (
            waiting(message="exclusion: ask for a whole card"),
            f"{SYNCED}; its pod waits: exclusion: ask for a whole card",
        ),
        (waiting(status="True", message="placed"), SYNCED),
        (waiting(), SYNCED),
        (waiting(message=7), SYNCED),
    ],
)
def test_why_its_pod_waits_is_said(of_pod: OwnedPod, message: str) -> None:
    (condition,) = status_of(share("01"), of_pod, None, now=NOW)["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Synced", "True", "Synced")
    assert condition["message"] == message
