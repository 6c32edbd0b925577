"""A daemon's command line: flags derived from its settings, help, and the exit codes that scripts rely on."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from partage_base.daemon.cli import daemon_command
from partage_base.daemon.life import Daemon
from support import command_line
from unit.daemon.processes import clean_environment
from unit.daemon.samples import Sample


async def never(_settings: Sample, _daemon: Daemon) -> Any:
    raise AssertionError("it was started")


def too_many(settings: Sample) -> list[str]:
    return ["five tries are too many"] if settings.tries == 5 else []


def asked(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = daemon_command("crishim", Sample, start=never, check=too_many, about="A daemon for tests.")
    argv = ["partage-crishim", "--root", str(root), *arguments]
    return command_line.run(command, argv, clean_environment(environment))


def test_help_tells_each_setting_with_its_sentence_its_variables_and_its_default(tmp_path: Path) -> None:
    done = asked(tmp_path, "--help", COLUMNS="500")
    text = " ".join(done.stdout.split())
    assert done.returncode == 0
    assert "--tries TRIES How often it tries. [PARTAGE_CRISHIM_TRIES; default: 3]" in text
    assert "--guard / --no-guard" in text
    assert "--enforce strict|advisory" in text
    assert "[PARTAGE_CRISHIM_NODE_NAME or PARTAGE_NODE_NAME; default: " in text
    assert "Exit codes: 0 done, 1 failed, 2 usage, 78 bad configuration." in text


def test_a_check_starts_nothing_and_tells_every_mistake(tmp_path: Path) -> None:
    good, bad = asked(tmp_path, "--check"), asked(tmp_path, "--check", "--tries", "5")
    assert (good.returncode, good.stderr) == (0, "partage-crishim: nothing is wrong with its configuration\n")
    assert (bad.returncode, bad.stderr) == (78, "partage-crishim: five tries are too many\n")


def test_version_names_the_program(tmp_path: Path) -> None:
    done = asked(tmp_path, "--version")
    assert (done.returncode, done.stdout.split(",")[0]) == (0, "partage-crishim")


def test_print_config_is_toml_with_the_origin_of_each_value(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("[crishim]\ntries = 2\n")
    config = str(tmp_path / "own.toml")
    done = asked(tmp_path, "--print-config", "--no-guard", "--config", config, PARTAGE_NODE_NAME="n1")
    lines = done.stdout.splitlines()
    assert tomllib.loads(done.stdout)["crishim"]["trusted"] == ["kube-system"]
    assert "guard = false  # --guard" in lines
    assert f"tries = 2  # {config} [crishim]" in lines
    assert 'node_name = "n1"  # PARTAGE_NODE_NAME' in lines
    assert 'enforce = "strict"  # default' in lines


def test_no_file_name_can_break_out_of_its_comment(tmp_path: Path) -> None:
    config = tmp_path / "own\nroot = '"
    config.write_text("[crishim]\ntries = 2\n")
    done = asked(tmp_path, "--print-config", "--config", str(config))
    assert tomllib.loads(done.stdout)["crishim"]["root"] == str(tmp_path)


@pytest.mark.parametrize("arguments", [["--trusted", "a,b"], ["--trusted", "a", "--trusted", "b"]])
def test_a_list_is_given_with_commas_or_repeated(tmp_path: Path, arguments: list[str]) -> None:
    done = asked(tmp_path, "--print-config", *arguments)
    assert tomllib.loads(done.stdout)["crishim"]["trusted"] == ["a", "b"]


def test_a_list_can_be_emptied(tmp_path: Path) -> None:
    done = asked(tmp_path, "--print-config", "--trusted", "")
    assert tomllib.loads(done.stdout)["crishim"]["trusted"] == []


def test_the_default_file_lies_below_the_root(tmp_path: Path) -> None:
    """A second node in a folder of the same machine thus has its own file."""
    file = tmp_path / "etc/partage/partage.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[common]\nnode_name = "inside"\n')
    done = asked(tmp_path, "--print-config")
    assert tomllib.loads(done.stdout)["crishim"]["node_name"] == "inside"


def test_bad_configuration_tells_every_mistake_on_a_line_and_exits_with_78(tmp_path: Path) -> None:
    done = asked(tmp_path, "--tries", "9999", "--log-level", "loud", PARTAGE_CRISHIM_TRYES="1")
    assert done.returncode == 78
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "partage-crishim: unknown variable PARTAGE_CRISHIM_TRYES; did you mean PARTAGE_CRISHIM_TRIES?",
        "partage-crishim: log_level is 'loud' in --log-level; allowed: one of debug, info, warning, error",
        "partage-crishim: tries is '9999' in --tries; allowed: an integer, at least 1, at most 1000",
    ]


def test_a_named_file_that_is_missing_is_bad_configuration(tmp_path: Path) -> None:
    done = asked(tmp_path, "--config", "absent.toml")
    assert done.returncode == 78
    assert done.stderr.startswith("partage-crishim: cannot read absent.toml: there is no such file")


@pytest.mark.parametrize("arguments", [["--tryes", "1"], ["extra"], ["--tries"], ["--guard=1"]])
def test_what_is_no_flag_is_a_usage_error(tmp_path: Path, arguments: list[str]) -> None:
    done = asked(tmp_path, *arguments)
    assert done.returncode == 2
    assert "Error: " in done.stderr
