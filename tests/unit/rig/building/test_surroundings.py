"""What the machine's user has set is respected, however odd."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from rig.programs import toolchain
from rig.programs.cache import cache_of
from rig.programs.steps import advice
from rig.programs.telling import Lines
from rig.errors import MachineUnfit
from support.fake_programs import Fake


def ignored(_: str) -> None:
    """What is said is not the point of the test."""


@pytest.mark.parametrize(
    ("environ", "root"),
    [
        ({"PARTAGE_RIG_CACHE": "/a b/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/a b/c"),
        ({"PARTAGE_RIG_CACHE": "", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/partage/rig"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/partage/rig"),
        ({"XDG_CACHE_HOME": "", "HOME": "/my home"}, "/my home/.cache/partage/rig"),
    ],
)
def test_the_cache_is_where_the_user_wants_it(environ: dict[str, str], root: str) -> None:
    assert cache_of(environ).root == Path(root)


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}])
def test_without_a_home_the_cache_is_in_the_one_that_passwd_names(environ: dict[str, str]) -> None:
    assert cache_of(environ).root == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache/partage/rig"


def test_a_cache_that_go_would_take_for_two_is_refused() -> None:
    with pytest.raises(MachineUnfit, match="set PARTAGE_RIG_CACHE"):
        cache_of({"PARTAGE_RIG_CACHE": "/a:b"})


def test_an_old_go_is_passed_over_for_one_that_was_fetched(fake: Fake) -> None:
    fake.tell("goversion", "go1.21.13\n")
    folder = fake.cache.root / "wheel"
    fetched = folder / "go/bin/go"
    fetched.parent.mkdir(parents=True)
    fetched.write_text((fake.folder / "bin/go").read_text())
    fetched.chmod(0o755)
    folder.rename(fake.cache.entry(toolchain.wheel_key()))
    go = toolchain.find_go(fake.cache, Lines(pytest.fail))
    assert go.program == fake.cache.entry(toolchain.wheel_key()) / "go/bin/go"


@pytest.mark.parametrize(
    ("tail", "start"),
    [
        ("compile: writing output: write $WORK/b1: no space left on device", "the disk is full"),
        ("dial tcp: lookup host: no such host", "is there a network?"),
        ("verifying module: checksum mismatch", "what came is not what was published"),
        ("link: signal: killed", "memory ran out"),
        ("undefined: frobnicate", "try again"),
    ],
)
def test_a_failure_comes_with_what_to_try(tail: str, start: str) -> None:
    assert advice(tail).startswith(start)
