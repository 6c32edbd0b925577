"""The host as its own program reports it; programs run there are bounded in time and output."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from partage_cli.installation.places import JOURNAL
from partage_cli.rollout.installer.host import HostProgram, Ran, inside
from partage_cli.rollout.order import HostState
from support.kube import until

VERSION = "0.1.0-g000000000001"
STATUS = b'{"version":"0.1.0-g000000000001","in_force":true,"why":null,"endpoint":"crishim","steps":{}}'


class Programs:
    """Records programs instead of running them, and returns a given result."""

    def __init__(self, ran: Ran) -> None:
        self.ran, self.asked = ran, [("", 0.0)][:0]

    async def __call__(self, argv: Sequence[str], within_s: float) -> Ran:
        self.asked.append((" ".join(argv), within_s))
        return self.ran


def installed(root: Path, *versions: str) -> Path:
    (root / JOURNAL).parent.mkdir(parents=True)
    (root / JOURNAL).write_text("{}")
    for version in versions:
        (root / "opt/partage" / version / "bin").mkdir(parents=True)
        (root / "opt/partage" / version / "bin/partage").touch()
    return root


def a_host(root: Path, ran: Ran) -> tuple[HostProgram, Programs]:
    programs = Programs(ran)
    return HostProgram(root, VERSION, within_s=900, run=programs), programs


async def test_a_host_without_a_journal_has_nothing_and_is_not_asked(tmp_path: Path) -> None:
    host, programs = a_host(tmp_path, Ran(0, STATUS))
    assert await host.state() == HostState(why="nothing is installed")
    assert programs.asked == []


async def test_its_own_word_counts_and_the_newer_program_says_it(tmp_path: Path) -> None:
    host, programs = a_host(installed(tmp_path, VERSION, "current"), Ran(3, STATUS))
    assert await host.state() == HostState(version=VERSION, in_force=True)
    assert programs.asked == [(f"/opt/partage/{VERSION}/bin/partage node status -o json", 60.0)]


async def test_without_this_version_the_one_in_force_is_asked(tmp_path: Path) -> None:
    host, programs = a_host(installed(tmp_path, "current"), Ran(0))
    assert await host.do("uninstall") is None
    assert programs.asked == [("/opt/partage/current/bin/partage node uninstall", 900)]


async def test_an_installed_host_without_any_program_is_neither_bare_nor_in_force(tmp_path: Path) -> None:
    host, _ = a_host(installed(tmp_path), Ran(0))
    state = await host.state()
    assert (state.version, state.in_force) == ("", False)
    assert await host.do("install") == "there is no program for it on the host: /opt/partage has no version"


@pytest.mark.parametrize("out", [b"", b"no JSON", b"[]", b'{"version":1}', b"[" * 9999])
async def test_a_status_that_can_t_be_read_is_no_status(tmp_path: Path, out: bytes) -> None:
    host, _ = a_host(installed(tmp_path, VERSION), Ran(1, out, b"Traceback\nValueError: bad\n"))
    state = await host.state()
    assert (state.version, state.in_force) == ("", False)
    assert state.why == "`partage node status` on the host: ValueError: bad (exit code 1)"


@pytest.mark.parametrize(
    ("ran", "why"),
    [
        (Ran(1, b"data", b"a\npartage: it refuses\n"), "partage: it refuses (exit code 1)"),
        (Ran(1, b"only this\n", b""), "only this (exit code 1)"),
        (Ran(-9), "killed by signal 9"),
        (Ran(None, b"", b"half"), "half (killed after 900 s)"),
    ],
)
async def test_a_command_that_fails_says_why_in_its_last_line(tmp_path: Path, ran: Ran, why: str) -> None:
    host, _ = a_host(installed(tmp_path, VERSION), ran)
    assert await host.do("switch-on") == f"`partage node switch-on`: {why}"


def is_dead(pid: int) -> bool:
    """Also true for a zombie whose new parent has not waited for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may change its root folder")


@needs_root
async def test_a_program_runs_in_the_hosts_root_with_the_nodes_name_and_none_of_our_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
    code = "import os, sys; print(os.getcwd(), *sorted(os.environ)); sys.exit(7)"
    ran = await inside(Path("/"), "n1")([sys.executable, "-I", "-S", "-c", code], 60)
    assert ran.code == 7
    assert ran.out.decode().split() == ["/", "HOME", "LANG", "PARTAGE_NODE_NAME", "PATH"]


@needs_root
async def test_a_program_that_floods_us_is_read_and_its_last_words_are_kept() -> None:
    code = "import sys; sys.stderr.write('x' * 3_000_000); sys.stderr.write('\\nthe end')"
    ran = await inside(Path("/"), "n1")([sys.executable, "-I", "-S", "-c", code], 60)
    assert (ran.code, ran.last_words) == (0, "the end")
    assert len(ran.err) <= 64 << 10


@pytest.mark.slow
@needs_root
async def test_a_program_that_takes_too_long_is_killed_with_all_that_it_started(
    caplog: pytest.LogCaptureFixture,
) -> None:
    code = (
        "import subprocess; print(subprocess.Popen(['sleep', '600']).pid, flush=True); subprocess.run(['sleep', '600'])"
    )
    ran = Ran(None)
    for within_s in (1, 10, 100):  # it must have started its child, which takes long on a busy machine
        ran = await inside(Path("/"), "n1")([sys.executable, "-I", "-c", code], within_s)
        assert ran.code is None
        if ran.out:
            break
    await until(lambda: is_dead(int(ran.out)))
    assert not caplog.records


@needs_root
async def test_a_program_that_is_not_there_is_said() -> None:
    ran = await inside(Path("/"), "n1")(["/opt/partage/none/bin/partage"], 60)
    assert ran.code == 1
    assert "FileNotFoundError" in ran.last_words
