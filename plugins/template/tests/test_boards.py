"""What the kit can't check: the choice of boards. The fixtures give the real `SchedulerFramework` and plugin host."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from partage_plugins import Refused
from partage_plugins.api import Granted, Kind, Slot
from partage_plugins.testing.examples import container, inventory, pod
from partage_plugins.testing.fixtures import PluginHosts, SchedulerSides

SCHEDULER = {"fpga": "partage_fpga_template.scheduler:FpgaScheduler"}
NODE = {"fpga": "partage_fpga_template.node:FpgaNode"}


def granted(*boards: str) -> Granted:
    grants = msgspec.Raw(msgspec.json.encode([{"board": board} for board in boards]))
    return Granted(gen=1, grants={Kind("fpga"): grants}, parts={Kind("fpga"): msgspec.Raw(b'{"boards":["fpga0"]}')})


def test_the_lowest_boards_go_first(scheduler_side: SchedulerSides) -> None:
    side = scheduler_side(SCHEDULER, inventory(fpga={"boards": ["fpga10", "fpga2", "fpga9"]}))
    request = side.requests(pod({"fpga.example.com/boards": "2"}))
    (grants,) = side.allocate(request, Slot(0)).values()
    assert [grant.board for grant in grants[Kind("fpga")]] == ["fpga2", "fpga9"]


def test_the_fullest_node_is_preferred(scheduler_side: SchedulerSides) -> None:
    side = scheduler_side(
        SCHEDULER, inventory(fpga={"boards": ["fpga0", "fpga1"]}), inventory(fpga={"boards": ["fpga0"]})
    )
    roomy, full = side.scores(side.requests(pod({"fpga.example.com/boards": "1"})), np.array([0, 1], dtype=np.int32))
    assert full > roomy


def test_a_container_gets_the_device_files_of_its_boards(plugin_host: PluginHosts, tmp_path: Path) -> None:
    adjustment = plugin_host(NODE).adjust(container(), granted("fpga0")).adjustment
    assert [device.host_path for device in adjustment.devices] == [f"{tmp_path}/dev/fpga0"]
    assert adjustment.env == {"FPGA_BOARDS": "fpga0"}


def test_a_board_that_is_gone_is_refused(plugin_host: PluginHosts) -> None:
    with pytest.raises(Refused, match="fpga3 is not on this node; was it taken out"):
        plugin_host(NODE).adjust(container(), granted("fpga0", "fpga3"))
