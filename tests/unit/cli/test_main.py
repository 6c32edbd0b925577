"""The command line as a whole: help, suggestions, lazy subcommands, and one line for expected errors."""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Final

import click
import pytest

from partage_cli.main import GROUPS, SUBCOMMANDS, Subcommand, cli, main
from partage_plugins.errors import Refused
from unit.cli.program import PARTAGE, environment, partage, process

DEFECT: Final = RuntimeError("a defect")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs one subcommand that raises the given exception; returns exit code and stderr."""

    def run(raised: BaseException | None, *arguments: str, program: str = "partage") -> tuple[int, str]:
        @click.command()
        def failing() -> None:
            if raised is not None:
                raise raised

        monkeypatch.setattr(sys, "argv", [program, *(arguments or ("fail",))])
        monkeypatch.setitem(SUBCOMMANDS, "fail", Subcommand("made_up", "Fails."))
        monkeypatch.setitem(sys.modules, "made_up", failing_module(failing))
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, capsys.readouterr().err

    return run


def failing_module(command: click.Command) -> object:
    class Module:
        pass

    module = Module()
    module.__dict__["command"] = command
    return module


def test_what_is_expected_is_one_line_and_exit_code_1(run: Callable[..., tuple[int, str]]) -> None:
    assert run(Refused("no such\ncard")) == (1, "partage: no such card [PTG201]\n")
    assert run(FileNotFoundError(2, "No such file or directory", "/a/b")) == (
        1,
        "partage: /a/b: No such file or directory [PTG103]\n",
    )
    assert run(OSError("something odd")) == (1, "partage: something odd [PTG103]\n")
    assert run(click.ClickException("not today")) == (1, "partage: not today [PTG102]\n")


def test_interrupted_is_130_and_says_nothing(run: Callable[..., tuple[int, str]]) -> None:
    code, told = run(KeyboardInterrupt())
    assert (code, told.strip()) == (130, "")


def test_an_aborted_question_is_a_failure(run: Callable[..., tuple[int, str]]) -> None:
    assert run(click.Abort())[0] == 1


def test_a_broken_pipe_is_quiet(run: Callable[..., tuple[int, str]]) -> None:
    assert run(BrokenPipeError(32, "Broken pipe")) == (1, "")


def test_a_defect_keeps_its_traceback(run: Callable[..., tuple[int, str]]) -> None:
    with pytest.raises(RuntimeError) as raised:
        run(DEFECT)
    assert raised.value is DEFECT


def test_done_is_0(run: Callable[..., tuple[int, str]]) -> None:
    assert run(None) == (0, "")


def test_wrong_usage_is_2_with_a_hint(run: Callable[..., tuple[int, str]]) -> None:
    code, told = run(None, "fail", "--no-such-option")
    assert code == 2
    assert "Try 'partage fail --help' for help." in told
    assert "No such option" in told


def test_as_a_kubectl_plugin_it_calls_itself_as_people_typed_it(run: Callable[..., tuple[int, str]]) -> None:
    assert "Usage: kubectl partage fail" in run(None, "fail", "much", program="/bin/kubectl-partage")[1]


def test_a_misspelt_subcommand_gets_a_suggestion_and_nothing_is_imported(tmp_path: Path) -> None:
    done = partage(tmp_path, "kesy")
    assert done.returncode == 2
    assert "No such command 'kesy'. Did you mean keys?" in done.stderr
    assert "Did you mean" not in partage(tmp_path, "xyzzy").stderr


def test_help_lists_every_subcommand_in_its_group_without_importing_one() -> None:
    code = (
        "import sys; from partage_cli.main import cli; cli(['--help'], standalone_mode=False); "
        "heavy = ('partage_cli.d', 'partage_cli.k', 'partage_cli.n', 'partage_cli.s', 'numpy', 'cryptography'); "
        "assert not [name for name in sys.modules if name.startswith(heavy)]"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for name, subcommand in SUBCOMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(subcommand.summary)}$", done.stdout, re.MULTILINE)
    lines = done.stdout.splitlines()
    for title, group in GROUPS.items():
        below = lines[lines.index(f"{title}:") + 1 :]
        assert [line.split()[0] for line in below[: len(group)]] == sorted(group)
    assert "Examples:" in done.stdout


def test_a_command_that_is_gone_says_what_to_type_instead(run: Callable[..., tuple[int, str]]) -> None:
    code, told = run(None, "logs", "-f", "train")
    assert (code, told) == (2, "partage: `partage logs` is gone: docker logs (docs/docker.md) [PTG101]\n")
    assert "docker run --runtime partage -e PARTAGE_SHARE=300" in run(None, "run", "--share", "300", "IMAGE")[1]


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_of_the_table_is_there_and_calls_itself_as_the_table_does(name: str) -> None:
    command = getattr(importlib.import_module(SUBCOMMANDS[name].module), SUBCOMMANDS[name].attribute)
    assert isinstance(command, click.Command)
    assert command.name == name
    assert command.get_short_help_str(limit=200) == SUBCOMMANDS[name].summary
    with click.Context(cli) as context:
        assert cli.get_command(context, name) is command


def test_version_is_told_even_where_nothing_is_installed(
    monkeypatch: pytest.MonkeyPatch, run: Callable[..., tuple[int, str]]
) -> None:
    def missing(_: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert run(None, "--version")[0] == 0


@pytest.mark.slow
def test_the_root_may_come_from_the_environment(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PARTAGE, "keys", "new"], env=environment(PARTAGE_ROOT=str(tmp_path)), capture_output=True, check=False
    )
    assert done.returncode == 0
    assert (tmp_path / "etc/partage/keys.d").is_dir()


@pytest.mark.slow
def test_a_reader_that_went_away_is_nobodys_failure_to_talk_about(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PARTAGE, "--root", tmp_path, "--help"], env=environment(), stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert done.stderr == b""


@pytest.mark.slow
def test_output_that_can_not_be_written_is_a_failure_in_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*PARTAGE, "--root", tmp_path, "--help"],
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["partage: No space left on device [PTG103]"]


@pytest.mark.slow
def test_a_closed_stdout_is_no_defect(tmp_path: Path) -> None:
    done = process(tmp_path, "--help", start='exec "$@" >&-')
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_real_interrupt_ends_with_130(tmp_path: Path) -> None:
    folder = tmp_path / "etc/partage/signing.d"
    folder.mkdir(parents=True, mode=0o700)
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    argv = [*PARTAGE, "--root", str(tmp_path), "keys", "new"]
    with subprocess.Popen(argv, env=environment(), stderr=subprocess.PIPE, text=True) as program:
        while not any(
            "->" in line and f" {program.pid} " in line for line in Path("/proc/locks").read_text().splitlines()
        ):
            assert program.poll() is None
            time.sleep(0.01)
        program.send_signal(signal.SIGINT)
        _, said = program.communicate()
    os.close(held)
    assert program.returncode == 128 + signal.SIGINT
    assert "Traceback" not in said
