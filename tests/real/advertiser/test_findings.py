"""What a broker found wrong becomes an event on the Node, though the broker has no way to the API server."""

from __future__ import annotations

import pytest

from partage_base.findings import FINDINGS_FOLDER, Findings, Problem, encode_findings
from partage_plugins.vocabulary.names import ContainerName, Namespace, PodName, PodUid
from partage_plugins.vocabulary.pods import PodRef
from support.advertiser_stage import AdvertiserStage

pytestmark = pytest.mark.timeout(300)


def test_a_finding_is_an_event_on_the_node(stage: AdvertiserStage) -> None:
    stage.start()
    pod = PodRef(namespace=Namespace("team-a"), name=PodName("train-0"), uid=PodUid("u1"))
    found = Problem("CoveredMounts", "what partage mounted at /run/partage is covered", stops=True)
    findings = Findings(subject="a" * 32, pod=pod, container=ContainerName("main"), found=(found,))
    stage.machine.write(f"/{FINDINGS_FOLDER}/{'a' * 32}.json", encode_findings(findings).decode())
    stage.wait_event("CoveredMounts", "In container main of pod team-a/train-0 what partage mounted at /run/partage is")
