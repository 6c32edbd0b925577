"""The pages about nodes match the commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec

from partage_cli.doctor.command import CHECKS
from partage_cli.node.command import command as node_command
from partage_cli.nodes.reports import Heartbeat, NodeReport, Report
from partage_plugins.api import Card

ROOT: Final = Path(__file__).parents[3]
TROUBLE: Final = (ROOT / "docs/troubleshooting.md").read_text()
CONFIGURATION: Final = (ROOT / "docs/configuration.md").read_text()
INSTALL: Final = (ROOT / "docs/install.md").read_text()


def names(kind: type[msgspec.Struct]) -> set[str]:
    return {each.encode_name for each in msgspec.structs.fields(kind)}


def test_every_check_is_on_the_page_and_the_page_names_no_other() -> None:
    sources = "".join(file.read_text() for file in (ROOT / "cli/partage_cli/doctor").glob("*.py"))
    made = set(re.findall(r'(?:About\(|CHECK: Final = )"([a-z-]+)"', sources))
    rows = re.findall(r"^\| (`[a-z-]+`(?:, `[a-z-]+`)*) \|", TROUBLE, re.MULTILINE)
    assert made == set(re.findall(r"[a-z-]+", " ".join(rows)))
    assert set(CHECKS) - made == {"runtime"}


def test_every_command_about_the_node_is_on_a_page() -> None:
    named = re.findall(r"\bpartage node ([a-z-]+)", CONFIGURATION + INSTALL)
    assert set(named) == set(node_command.commands)


def test_the_page_has_the_shape_of_the_report() -> None:
    block = CONFIGURATION.partition("### partage nodes")[2].partition("```json")[2].partition("```")[0]
    told = msgspec.json.decode(block.replace("…", ""))
    assert set(told) == names(Report)
    (node,) = told["nodes"]
    assert set(node) == names(NodeReport)
    assert set(node["heartbeat"]) == names(Heartbeat)
    assert set(node["cards"][0]) == names(Card)
