"""A daemon's command line: flags made from its settings, help, and the exit codes that scripts rely on."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from unit.daemon.processes import run_to_end, write_script

pytestmark = pytest.mark.slow  # each test starts processes


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return write_script(tmp_path)


def test_help_tells_each_setting_with_its_sentence_its_variables_and_its_default(script: Path) -> None:
    done = run_to_end(script, "--help", COLUMNS="500")
    text = " ".join(done.stdout.split())
    assert done.returncode == 0
    assert "--tries TRIES How often it tries. [PARTAGE_CRISHIM_TRIES; default: 3]" in text
    assert "--guard / --no-guard" in text
    assert "--enforce strict|advisory" in text
    assert "[PARTAGE_CRISHIM_NODE_NAME or PARTAGE_NODE_NAME; default: " in text
    assert "Exit codes: 0 done, 1 failed, 2 usage, 78 bad configuration." in text


def test_a_check_starts_nothing_and_tells_every_mistake(script: Path) -> None:
    good, bad = run_to_end(script, "--check"), run_to_end(script, "--check", "--tries", "5")
    assert (good.returncode, good.stderr) == (0, "partage-crishim: nothing is wrong with its configuration\n")
    assert (bad.returncode, bad.stderr) == (78, "partage-crishim: five tries are too many\n")


def test_version_names_the_program(script: Path) -> None:
    done = run_to_end(script, "--version")
    assert (done.returncode, done.stdout.split(",")[0]) == (0, "partage-crishim")


def test_print_config_is_toml_with_the_origin_of_each_value(script: Path) -> None:
    (script.parent / "own.toml").write_text("[crishim]\ntries = 2\n")
    config = str(script.parent / "own.toml")
    done = run_to_end(script, "--print-config", "--no-guard", "--config", config, PARTAGE_NODE_NAME="n1")
    lines = done.stdout.splitlines()
    assert tomllib.loads(done.stdout)["crishim"]["trusted"] == ["kube-system"]
    assert "guard = false  # --guard" in lines
    assert f"tries = 2  # {config} [crishim]" in lines
    assert 'node_name = "n1"  # PARTAGE_NODE_NAME' in lines
    assert 'enforce = "strict"  # default' in lines


def test_no_file_name_can_break_out_of_its_comment(script: Path) -> None:
    config = script.parent / "own\nroot = '"
    config.write_text("[crishim]\ntries = 2\n")
    done = run_to_end(script, "--print-config", "--config", str(config))
    assert tomllib.loads(done.stdout)["crishim"]["root"] == str(script.parent)


@pytest.mark.parametrize("arguments", [["--trusted", "a,b"], ["--trusted", "a", "--trusted", "b"]])
def test_a_list_is_given_with_commas_or_repeated(script: Path, arguments: list[str]) -> None:
    done = run_to_end(script, "--print-config", *arguments)
    assert tomllib.loads(done.stdout)["crishim"]["trusted"] == ["a", "b"]


def test_a_list_can_be_emptied(script: Path) -> None:
    done = run_to_end(script, "--print-config", "--trusted", "")
    assert tomllib.loads(done.stdout)["crishim"]["trusted"] == []


def test_the_default_file_lies_below_the_root(script: Path) -> None:
    """Another node in a folder of the same machine has a file of its own."""
    file = script.parent / "etc/partage/partage.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[common]\nnode_name = "inside"\n')
    done = run_to_end(script, "--print-config")
    assert tomllib.loads(done.stdout)["crishim"]["node_name"] == "inside"


def test_bad_configuration_tells_every_mistake_on_a_line_and_exits_with_78(script: Path) -> None:
    done = run_to_end(script, "--tries", "9", "--log-level", "loud", PARTAGE_CRISHIM_TRYES="1")
    assert done.returncode == 78
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "partage-crishim: unknown variable PARTAGE_CRISHIM_TRYES; did you mean PARTAGE_CRISHIM_TRIES?",
        "partage-crishim: log_level is 'loud' in --log-level; allowed: one of debug, info, warning, error",
        "partage-crishim: tries is '9' in --tries; allowed: an integer, at least 1, at most 5",
    ]


def test_a_named_file_that_is_missing_is_bad_configuration(script: Path) -> None:
    done = run_to_end(script, "--config", "absent.toml")
    assert done.returncode == 78
    assert done.stderr.startswith("partage-crishim: cannot read absent.toml: there is no such file")


def test_print_config_refuses_what_the_daemon_would_refuse(script: Path) -> None:
    assert run_to_end(script, "--print-config", "--tries", "0").returncode == 78


@pytest.mark.parametrize("arguments", [["--tryes", "1"], ["extra"], ["--tries"], ["--guard=1"]])
def test_what_is_no_flag_is_a_usage_error(script: Path, arguments: list[str]) -> None:
    done = run_to_end(script, *arguments)
    assert done.returncode == 2
    assert "Error: " in done.stderr
