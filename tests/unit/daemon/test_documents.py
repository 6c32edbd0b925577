"""The configuration page tells every setting that all daemons take, with its default."""

from __future__ import annotations

from pathlib import Path

from partage_base.daemon.cli import daemon_command
from partage_base.daemon.life import Daemon, Running
from partage_base.daemon.settings import CommonSettings, fields_of

_PAGE = Path(__file__).parents[3] / "docs/configuration.md"


def _rows() -> dict[str, str]:
    rows = [line.split("|") for line in _PAGE.read_text().splitlines() if line.startswith("| `")]
    return {row[1].strip(" `"): row[2].strip() for row in rows}


def test_every_common_setting_has_a_row_with_its_default() -> None:
    rows = _rows()
    for name in fields_of(CommonSettings):
        default = getattr(CommonSettings(), name)
        assert name in rows
        assert name == "node_name" or rows[name].strip("`") in {str(default), "empty: off"}


def test_every_flag_that_is_no_setting_is_told() -> None:
    known = fields_of(CommonSettings)
    command = daemon_command("crishim", CommonSettings, start=_never, about="Test.")
    own = {option for parameter in command.params if parameter.name not in known for option in parameter.opts}
    assert own == {"--config", "--print-config", "--version"}
    assert all(f"`{option}" in _PAGE.read_text() for option in own)


async def _never(_: CommonSettings, __: Daemon) -> Running:
    raise AssertionError
