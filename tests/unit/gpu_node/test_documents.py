"""The configuration page lists every variable and every way of attaching."""

from __future__ import annotations

from pathlib import Path

from partage_gpu.node.settings import ATTACH, CAPABILITIES, settings_from

_PAGE = (Path(__file__).parents[3] / "docs/configuration.md").read_text()


def test_every_variable_has_a_row() -> None:
    for name in (ATTACH, CAPABILITIES):
        assert f"\n| `{name}` |" in _PAGE


def test_every_way_has_a_row_and_can_be_set() -> None:
    rows = _PAGE.partition("| way |")[2].partition("\n\n")[0].splitlines()
    ways = [row.split("`")[1] for row in rows if row.startswith("| `")]
    assert [settings_from({ATTACH: way}).attach for way in ways] == ways
    assert ways == ["cdi", "nvidia-cdi", "nvidia-env", "raw"]
