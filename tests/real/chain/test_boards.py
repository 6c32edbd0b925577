"""KubeGPU's story: devices of several kinds, one of them from a third-party plugin, placed together and handed over."""

from __future__ import annotations

from partage_plugins.api import ContainerName, Kind
from partage_plugins.api.keys import GPU_MEMORY, GPU_MILLI
from support.chain_stage import BOARDS, Chain
from support.isolation_stage import seen


def test_a_pod_gets_a_board_and_part_of_a_card_of_one_node(chain: Chain) -> None:
    pod = chain.pod("both", limits={GPU_MILLI: "500", GPU_MEMORY: "4Gi", BOARDS: "1"}).wait_running()
    grants = chain.allocation(pod).containers[ContainerName("main")]
    assert set(grants) == {"gpu", Kind("fpga")}
    assert pod.exec("/bin/sh", "-c", "echo $FPGA_BOARDS; test -c /dev/fpga0 && echo there").split() == [
        "fpga0",
        "there",
    ]
    assert seen(pod)["total"] == 4096


def test_boards_that_are_taken_keep_the_next_pod_waiting(chain: Chain) -> None:
    holders = [chain.pod(f"board-{number}", limits={BOARDS: "1"}) for number in range(2)]
    for pod in holders:
        pod.wait_running()
    assert {pod.node for pod in holders} == {"n1", "n2"}
    waits = chain.pod("third", limits={BOARDS: "1", GPU_MILLI: "250"})
    assert "2 not enough free FPGA boards" in waits.wait_why("FPGA")
    holders[0].delete()
    waits.wait_running()
    assert waits.node == holders[0].node
