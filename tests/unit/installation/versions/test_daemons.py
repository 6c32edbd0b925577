"""Facts about a node's daemons, from their files and processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from partage_cli.installation.errors import StepFailed
from partage_cli.installation.host import Host
from partage_cli.installation.versions.daemons import BROKER, CRISHIM, asked, by_unit, started_with


def host(root: Path) -> Host:
    return Host(root, cast("Any", None), lambda _: None)


def process(root: Path, number: int, *argv: str, **variables: str) -> None:
    folder = root / "proc" / str(number)
    folder.mkdir(parents=True)
    (folder / "cmdline").write_text("".join(f"{word}\0" for word in argv))
    (folder / "environ").write_text("".join(f"{name}={value}\0" for name, value in variables.items()))


def test_a_daemon_is_asked_again_with_the_flags_and_variables_that_it_was_started_with(tmp_path: Path) -> None:
    process(tmp_path, 7, "/bin/sh", "-c", "tail -f /var/log/partage-broker")
    process(
        tmp_path,
        8,
        "/opt/partage/1/bin/python3",
        "/opt/partage/current/bin/partage-broker",
        "--policy",
        "caps",
        PARTAGE_BROKER_RUNTIME="/run/x.sock",
        INVOCATION_ID="1",
    )
    assert started_with(host(tmp_path), BROKER) == (("--policy", "caps"), {"PARTAGE_BROKER_RUNTIME": "/run/x.sock"})
    assert started_with(host(tmp_path), CRISHIM) == ((), {})


def test_they_start_again_in_one_order_whatever_was_asked_first() -> None:
    assert by_unit((CRISHIM.unit, BROKER.unit)) == (BROKER, CRISHIM)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#!/bin/sh\necho one >&2\necho two >&2\nexit 3\n", "ended with 3: one; two"),
        ("#!/no/such/shell\n", "cannot run: No such file or directory"),
    ],
)
def test_a_program_that_does_not_answer_is_told_with_its_words(tmp_path: Path, text: str, why: str) -> None:
    program = tmp_path / "bin/partage"
    program.parent.mkdir()
    program.write_text(text)
    program.chmod(0o755)
    with pytest.raises(StepFailed, match=why):
        asked(host(tmp_path), tmp_path, "partage", "node", "contracts")


@pytest.mark.slow
def test_what_a_version_says_of_its_contracts_is_what_it_prints() -> None:
    """The test runs the command, as the previous version does."""
    command = (sys.executable, "-P", "-m", "partage_cli", "node", "contracts")
    done = subprocess.run(command, capture_output=True, check=True, cwd=Path(__file__).parents[4] / "cli")
    from partage_cli.installation.versions.contracts import OURS, decode  # noqa: PLC0415

    assert decode(done.stdout) == OURS
