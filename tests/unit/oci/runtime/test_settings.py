"""partage-oci.conf: what it may contain, and the effect of one wrong line."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from support.oci_program import Daemon, Program, built, line, sanitized

pytestmark = pytest.mark.slow

ASKS = {"annotations": {"partage.dev/gpu-milli": "300"}}
NODE = {"path": "/dev/nvidia0", "type": "c", "major": 195, "minor": 0}
HAS_CARDS = {"linux": {"devices": [NODE]}}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("sokcet /x", "there is no setting `sokcet`, but agent_wait_ms, broker, guard, runtime and socket"),
        ("guard maybe", "`guard` is yes or no, not `maybe`"),
        ("guard", "`guard` is yes or no, not ``"),
        ("runtime runc", "`runtime` is an absolute path, not `runc`"),
        ("socket agent.sock", "`socket` is an absolute path, not `agent.sock`"),
        ("broker /" + 107 * "b", f"`broker` is a path of at most 107 bytes, not `/{107 * 'b'}`"),
        ("agent_wait_ms soon", "`agent_wait_ms` is a whole number of milliseconds, at most 600000, not `soon`"),
        ("agent_wait_ms 600001", "`agent_wait_ms` is a whole number of milliseconds, at most 600000, not `600001`"),
        ("agent_wait_ms 1s", "`agent_wait_ms` is a whole number of milliseconds, at most 600000, not `1s`"),
    ],
)
def test_a_wrong_line_refuses_who_asks_and_stops_nobody_else(program: Program, written: str, said: str) -> None:
    program.configure("# ours", "", written)
    done = program.create(ASKS)
    assert done.returncode == 1
    assert done.stderr.decode() == f"partage: {program.path}.conf, line 7: {said}\n"
    assert program.create({}).returncode == 0
    assert program.run("state", "c1").returncode == 0


def test_lines_may_have_comments_and_any_space(program: Program) -> None:
    text = f"\n  # a comment\n\tsocket \t {program.socket}  \r\n\nagent_wait_ms 0\nruntime {program.runtime}"
    Path(f"{program.path}.conf").write_text(text)
    with Daemon(program.socket, line(answer="go", runtime="")) as agent:
        assert program.create(ASKS).returncode == 0
    assert len(agent.asked) == 1


@pytest.mark.parametrize("content", [b"guard no\n\0", b"#" * 65537])
def test_a_file_that_cannot_be_read_keeps_cards_from_who_asks_for_none(program: Program, content: bytes) -> None:
    Path(f"{program.path}.conf").write_bytes(content)
    program.create(HAS_CARDS)
    assert program.config()["linux"]["devices"] == []
    assert b".conf can't be read" in program.create(ASKS).stderr


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare of util-linux")
def test_without_proc_the_file_is_not_found_and_the_guard_is_on() -> None:
    with TemporaryDirectory() as folder:
        program = Program(Path(folder), built())
        runc = f"mount -t tmpfs none /usr/local/sbin && cp {program.runtime} /usr/local/sbin/runc"
        script = f'{runc} && mount -t tmpfs none /proc && exec "$@"'
        inside = ("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "-")
        program.run("create", "--bundle", program.bundle(HAS_CARDS), inside=inside)  # without an id nothing is created
        assert program.config()["linux"]["devices"] == []
        done = program.run("create", "--bundle", program.bundle(ASKS), "c1", inside=inside)
    said = b"partage: /proc/self/exe can't be read: No such file or directory\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_a_guard_that_is_neither_yes_nor_no_is_on(program: Program) -> None:
    program.configure("guard ys")
    program.create(HAS_CARDS)
    assert program.config()["linux"]["devices"] == []


def test_without_a_file_nothing_is_guarded() -> None:
    with TemporaryDirectory() as folder:
        program = Program(Path(folder), sanitized())
        Path(f"{program.path}.conf").unlink()
        bundle = program.bundle(HAS_CARDS)
        before = program.version()
        program.run("create", "--bundle", bundle)  # without an id no runtime creates anything
        assert program.version() == before
