"""The pages list every variable, XID, metric and way of choosing cards."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from partage_gpu.discovery import parts, settings
from partage_gpu.discovery.causes import HARMLESS, Gravity, cause_of
from partage_gpu.discovery.settings import Choice, PoolSetting, discovery_settings
from partage_plugins.api import HealthCause

DOCS = Path(__file__).parents[3] / "docs"
PAGE, CONFIGURATION = (DOCS / "advertiser.md").read_text(), (DOCS / "configuration.md").read_text()


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table with that first heading."""
    table = page.partition(f"| {heading} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


@pytest.mark.parametrize(
    "name",
    [
        settings.POOL,
        settings.RESERVE,
        settings.MEMORY_BEYOND,
        settings.QUIET,
        settings.HARMLESS,
        settings.SHARE_BLIND,
    ],
)
def test_every_variable_has_a_row_with_its_default(name: str) -> None:
    row = re.search(rf"\n\| `{name}` \| (.*?) \|", CONFIGURATION)
    assert row is not None
    default = "" if row[1] == "empty" else row[1].strip("`")
    assert discovery_settings({name: default}) == discovery_settings({})


def test_every_xid_stands_in_its_class() -> None:
    classes = {row[1]: {int(number) for number in re.findall("[0-9]+", row[0])} for row in rows(PAGE, "XID")}
    reset = {number for number in range(1000) if (cause := cause_of(number)) and cause.gravity == Gravity.RESET}
    assert classes["a program's own fault"] | classes["only told"] == set(HARMLESS)
    assert classes["only a reset helps"] == reset
    assert classes["fell off the bus"] == {79}
    assert rows(PAGE, "XID")[-1][0] == "all others"


def test_every_cause_has_a_row() -> None:
    told = {cause for row in rows(PAGE, "seen") for cause in re.findall("`(.*?)`", row[2])}
    assert told | {HealthCause.OTHER} == set(HealthCause)


def test_every_metric_has_a_row() -> None:
    told = {name for row in rows(PAGE, "metric") for name in re.findall("`partage_(.*?)`", row[0])}
    assert told == set(re.findall('"(gpu_[a-z_]+)"', Path(parts.__file__).read_text()))


def test_every_way_of_choosing_cards_can_be_set() -> None:
    chosen = [
        discovery_settings({settings.POOL: value}).shared for value in ("auto", "all", "none", "model=*H100*", "0")
    ]
    assert chosen[:3] == [PoolSetting("auto"), PoolSetting("all"), PoolSetting("none")]
    assert chosen[3:] == [
        PoolSetting("listed", (Choice("model", "*H100*"),)),
        PoolSetting("listed", (Choice("number", "0"),)),
    ]
    assert [row[0].split("`")[1] for row in rows(PAGE, "value")] == ["auto", "all", "0", "GPU-…", "model=*H100*"]
