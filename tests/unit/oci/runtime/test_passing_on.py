"""Every call that creates no container is passed to the runtime at once, unchanged."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from support.oci_program import Program, built

pytestmark = pytest.mark.slow

ASKS = {"process": {"env": ["PARTAGE_SHARE=300"]}}


@pytest.fixture
def program() -> Iterator[Program]:
    """The program as it is installed."""
    with TemporaryDirectory() as folder:
        yield Program(Path(folder), built())


@pytest.mark.parametrize(
    "words",
    [
        ("--root", "/run/r", "--log", "/l", "--log-format", "json", "start", "c1"),
        ("--root=/run/r", "exec", "--process", "/p", "--detach", "c1"),
        ("exec", "c1", "create", "--bundle", "/nowhere"),
        ("state", "c1"),
        ("kill", "--all", "c1", "9"),
        ("--systemd-cgroup", "--debug", "events", "--stats", "c1"),
        ("features",),
        ("--version",),
        ("--log", "create", "--rootless", "delete", "list"),
        ("restore", "--bundle", "/nowhere", "c1"),
        (),
    ],
)
def test_what_creates_nothing_reaches_the_runtime_word_for_word(program: Program, words: Sequence[str]) -> None:
    done = program.run(*words)
    assert done.stdout.decode().split("\n")[:-1] == (list(words) or [""])
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_runtime_is_called_by_its_own_name(program: Program) -> None:
    program.configure(runtime="/bin/cat")
    assert program.run("/proc/self/cmdline").stdout == b"/bin/cat\0/proc/self/cmdline\0"


@pytest.mark.parametrize("verb", ["state", "create", "delete"])
def test_the_runtime_inherits_what_came_and_nothing_else(program: Program, verb: str) -> None:
    """Descriptors, the environment, signals and the working directory."""
    shown = "ls /proc/self/fd; cat /proc/self/environ; grep ^Sig[BIC] /proc/self/status; pwd"
    shows = program.script("shows", f"#!/bin/sh\n{shown}\n")
    program.configure("guard yes", runtime=shows)
    words = (verb, "--bundle", program.bundle({"mounts": [{"source": "/dev/nvidia0"}]}), "c1")
    ignoring = ("sh", "-c", 'trap "" USR1; exec "$@"', "-")
    seen = [
        subprocess.run(
            [*ignoring, each, *words], env={"LANG": "x"}, cwd=program.folder, capture_output=True, check=True
        )
        for each in (shows, program.path)
    ]
    assert seen[1].stdout == seen[0].stdout


def test_another_exit_status_of_the_runtime_is_its_own(program: Program) -> None:
    program.configure(runtime="/bin/false")
    assert program.run("state", "c1").returncode == 1


def test_without_a_runtime_a_sentence_says_what_to_name(program: Program) -> None:
    program.configure(runtime="/no/runc")
    done = program.run("state", "c1")
    assert done.returncode == 1
    assert done.stderr == b"partage: the runtime /no/runc can't be started: No such file or directory\n"


def test_a_runtime_that_is_partage_oci_itself_is_no_endless_loop(program: Program) -> None:
    linked = program.folder / "runc"
    linked.symlink_to(program.path)
    program.configure(runtime=linked)
    done = program.run("state", "c1")
    assert done.returncode == 1
    assert b"is partage-oci itself; name runc or crun as `runtime` in partage-oci.conf" in done.stderr


def flags(bundle: Path) -> list[tuple[str, ...]]:
    """Ways to create a container with this bundle."""
    return [
        ("create", "--bundle", f"{bundle}", "c1"),
        ("create", f"--bundle={bundle}", "--pid-file", "/p", "c1"),
        ("create", "-b", f"{bundle}", "--no-pivot", "c1"),
        ("create", "-bundle", f"{bundle}", "--", "-c1"),
        ("create", "c1", "--console-socket", "/s", "--bundle", f"{bundle}"),
        ("run", "--detach", "--preserve-fds", "3", "--bundle", f"{bundle}", "c1"),
        ("--root", "/r", "--log-level", "debug", "--rootless", "auto", "create", "--bundle", f"{bundle}", "c1"),
        ("--cgroup-manager", "systemd", "--criu", "/c", "--debug", "create", "--bundle", f"{bundle}", "c1"),
    ]


@pytest.mark.parametrize("way", range(8))
def test_a_creation_is_seen_however_its_flags_are_written(program: Program, way: int) -> None:
    words = flags(program.bundle(ASKS))[way]
    done = program.run(*words)
    assert done.returncode == 1
    assert b"no agent answers" in done.stderr
    program.bundle({})
    assert program.run(*words).stdout.decode().split() == list(words)


def test_without_a_bundle_the_working_directory_is_it(program: Program) -> None:
    assert b"no agent answers" in program.run("create", "c1", cwd=program.bundle(ASKS)).stderr
