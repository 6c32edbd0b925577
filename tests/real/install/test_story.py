"""From a cluster without partage to one without it again, as an operator does it with helm, in pods of the real images.

The installer is off here: nodes stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from rig.client.wait import until
from support.install_stage import InstallStage, installable


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstallStage]:
    with installable(tmp_path_factory.mktemp("stage"), say=print) as made:
        yield made


def test_one_command_brings_keys_a_scheduler_and_advertisers_that_see_cards(stage: InstallStage) -> None:
    stage.install("installer.enabled=false")
    stage.wait_rolled_out("deployment/partage-scheduler", "daemonset/partage-advertiser")
    for name in stage.rig.nodes:
        until(f"{name} tells its cards", partial(stage.why_no_cards, name))
    stage.uninstall()
