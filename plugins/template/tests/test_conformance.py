"""Runs the conformance kit against this plugin; an author needs to write no more than this."""

from partage_plugins.testing import Subject
from partage_plugins.testing.examples import inventory, pod

BOARDS = "fpga.example.com/boards"

test_fpga = Subject(  # pytest shows one test for each check
    name="fpga",
    kind="fpga",
    scheduler="partage_fpga_template.scheduler:FpgaScheduler",
    node="partage_fpga_template.node:FpgaNode",
    pods=(pod({BOARDS: "1"}), pod({BOARDS: "2"}, {BOARDS: "1"}, {"cpu": "1"}, name="large")),
    inventories=(
        inventory(fpga={"boards": [f"fpga{number}" for number in range(12)]}),
        inventory(fpga={"boards": ["fpga0", "fpga1", "fpga7"]}),
        inventory(),
    ),
    files={"dev/fpga0": "", "dev/fpga1": "", "dev/fpga7": ""},
)
