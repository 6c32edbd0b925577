"""The configuration page lists every flag that is not a setting."""

from __future__ import annotations

from pathlib import Path

from partage_base.daemon.cli import daemon_command
from partage_base.daemon.life import Daemon, Running
from partage_base.daemon.settings import CommonSettings, fields_of

_PAGE = Path(__file__).parents[3] / "docs/configuration.md"


def test_every_flag_that_is_no_setting_is_told() -> None:
    known = fields_of(CommonSettings)
    command = daemon_command("crishim", CommonSettings, start=_never, about="Test.")
    own = {option for parameter in command.params if parameter.name not in known for option in parameter.opts}
    assert own == {"--config", "--print-config", "--version"}
    assert all(f"`{option}" in _PAGE.read_text() for option in own)


async def _never(_: CommonSettings, __: Daemon) -> Running:
    raise AssertionError
