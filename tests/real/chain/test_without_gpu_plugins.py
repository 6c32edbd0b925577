"""The core knows no kind: without an importable `partage_gpu` and without a broker, a pod still gets its board."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from rig.client.manifests import a_pod
from rig.identity.people import TEAM
from rig.rig import RigSettings, running
from support.advertiser_stage import AdvertiserStage
from support.chain_stage import BOARDS, OURS, scheduler_of
from support.crishim_stage import PLUGINS_FOLDER, behind, crishim, install_board, plugin_files
from support.isolation_stage import IMAGE, image
from support.scheduler_process import new_key, shown

NODE: Final = "n1"
BLOCKED: Final = "gpu,isolation"
"""The plugins for cards."""
ENV: Final = {"PARTAGE_PLUGINS_BLOCK": BLOCKED, "PYTHONPATH": PLUGINS_FOLDER}
ABSENT: Final = "raise ModuleNotFoundError('partage_gpu is not installed here', name='partage_gpu')\n"
MODULE: Final = "partage_gpu/__init__.py"


@pytest.mark.extended("a cluster of its own; the core may import no kind, and boards are tested beside cards")
def test_a_pod_gets_its_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTAGE_PLUGINS_BLOCK", BLOCKED)  # for the scheduler, which runs beside this test
    files = {**plugin_files(), f"{PLUGINS_FOLDER}/{MODULE}": ABSENT}
    node = behind(crishim(0, env=ENV, node=NODE), files, new_key(tmp_path))
    with running(RigSettings(nodes={NODE: node}), say=print) as rig:
        rig.registry.push(image(), IMAGE)
        scheduler = scheduler_of(rig.cluster, tmp_path)
        absent = tmp_path / "plugins" / MODULE
        absent.parent.mkdir()
        absent.write_text(ABSENT)
        install_board(rig.nodes[NODE].machine)
        AdvertiserStage(rig, NODE).start(env=ENV)
        with shown(scheduler):
            scheduler.start()
            said = a_pod("board", limits={BOARDS: "1"}, image=IMAGE, command=("/bin/sleep", "3600"), scheduler=OURS)
            pod = rig.cluster.pods.create(TEAM, said).wait_running()
            assert pod.exec("/bin/sh", "-c", "echo $FPGA_BOARDS; test -c /dev/fpga0 && echo there").split() == [
                "fpga0",
                "there",
            ]
