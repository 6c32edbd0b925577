"""Manual pages and completions are generated from `--help`, for every command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from partage_cli.main import SUBCOMMANDS
from partage_cli.manual import every, page, whole
from unit.cli.program import environment, partage, process

pytestmark = pytest.mark.slow  # it imports every command
TYPED = """
import sys
from partage_cli.main import main
sys.argv = ["partage"]
try:
    main()
finally:
    print([name for name in sys.modules if name.startswith("partage_cli.")], file=sys.stderr)
"""


def test_every_command_and_each_of_its_options_has_its_place_on_a_page() -> None:
    pages = {context.command_path: page(context) for context in every(whole())}
    assert {f"partage {name}" for name in SUBCOMMANDS} | {"partage keys new", "partage node pause"} <= pages.keys()
    for context in every(whole()):
        for parameter in context.command.get_params(context):
            if isinstance(parameter, click.Option) and parameter.get_help_record(context):
                option = max(parameter.opts, key=len).replace("-", "\\-")
                assert option in pages[context.command_path], (context.command_path, option)


def test_the_pages_are_roff_and_nothing_of_a_text_is_a_request() -> None:
    folder_free = [page(context) for context in every(whole())]
    known = (".TH ", ".SH ", ".TP", ".PP", ".nf", ".fi")
    for text in folder_free:
        assert [line for line in text.splitlines() if line.startswith((".", "'")) and not line.startswith(known)] == []
        assert text.splitlines().count(".nf") == text.splitlines().count(".fi")


def test_pages_are_written_and_one_is_printed(tmp_path: Path) -> None:
    done = partage(tmp_path, "man", "--into", str(tmp_path / "man1"))
    assert (done.returncode, done.stderr) == (0, "")
    assert {"partage.1", "partage-top.1", "partage-keys-rotate.1"} <= {
        each.name for each in (tmp_path / "man1").iterdir()
    }
    assert "\\-h, \\-\\-help" in (tmp_path / "man1/partage-top.1").read_text()
    assert partage(tmp_path, "man", "top").stdout == (tmp_path / "man1/partage-top.1").read_text()
    done = partage(tmp_path, "man", "tpo")
    assert (done.returncode, done.stdout) == (1, "")
    assert "`partage` has no command 'tpo'" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_what_it_reads(tmp_path: Path, shell: str) -> None:
    done = partage(tmp_path, "completion", shell)
    assert done.returncode == 0
    assert f"_PARTAGE_COMPLETE={shell}_complete" in done.stdout


def test_bash_completes_commands_without_importing_one_and_options_of_each(tmp_path: Path) -> None:
    def completed(words: str, at: int) -> list[str]:
        asks = environment(_PARTAGE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(at))
        done = subprocess.run([sys.executable, "-c", TYPED], env=asks, capture_output=True, text=True, check=False)
        modules.append(done.stderr)
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    modules: list[str] = []
    assert completed("partage s", 1) == ["simgpu", "simulate", "support-bundle", "suspend"]
    assert "partage_cli.s" not in modules[0]
    assert "--since" in completed("partage usage --", 2)
    assert process(tmp_path, "completion", "tcsh").returncode == 2
