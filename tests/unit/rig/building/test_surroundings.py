"""What the machine's user has set is respected, however odd."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from rig.building import ensure, toolchain
from rig.building.caching import cache_of
from rig.building.running import advice
from rig.building.telling import Lines
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


@pytest.mark.parametrize("home", ["", "a home with spaces", None])
def test_any_home_will_do(fake: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: str | None) -> None:
    if home is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", str(tmp_path / home) if home else "")
    monkeypatch.setenv("PARTAGE_RIG_CACHE", str(tmp_path / "a cache with spaces"))
    path = ensure("etcd", say=ignored)["etcd"]
    assert path.is_relative_to(tmp_path / "a cache with spaces")
    assert fake.environment.get("HOME") != ""


def test_go_keeps_its_caches_with_ours_and_the_users_settings(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPROXY", "file:///mirror")
    monkeypatch.setenv("GOFLAGS", "-mod=vendor")
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    monkeypatch.setenv("GOWORK", "/somewhere/go.work")
    monkeypatch.setenv("GOOS", "plan9")
    monkeypatch.setenv("GOROOT", "/another/go")
    ensure("etcd", say=ignored)
    seen = fake.environment
    ours = str(fake.cache.root / "go")
    assert (seen["GOCACHE"], seen["GOPATH"]) == (f"{ours}/build", f"{ours}/path")
    assert (seen["GOPROXY"], seen["GOFLAGS"]) == ("file:///mirror", "-mod=vendor")
    assert seen["HTTPS_PROXY"] == "proxy.example:3128"
    assert (seen["GOWORK"], seen["GOTOOLCHAIN"], seen["GOOS"]) == ("off", "local", "linux")
    assert "GOROOT" not in seen
    assert "-mod=readonly" in fake.calls("build")[0], "what a command says goes before GOFLAGS"
    assert "-modcacherw" in fake.calls("get")[0], "else the cache could not be removed by rm"


def test_a_cache_of_go_that_the_user_has_moved_stays_there(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.tell("changed", '{"GOCACHE": "/big/disk", "GOPATH": "/go"}')
    monkeypatch.setenv("GOCACHE", "/big/disk")
    monkeypatch.delenv("GOPATH", raising=False)
    ensure("etcd", say=ignored)
    assert fake.environment["GOCACHE"] == "/big/disk"
    assert "GOPATH" not in fake.environment, "it was set by `go env -w`, and go knows it"


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
    ("said", "version"),
    [
        ("go1.26.8\n", (1, 26, 8)),
        ("go1.27", (1, 27, 0)),
        ("go1.26.8 X:nocoverageredesign", (1, 26, 8)),
        ("go1.26.8-custom", (1, 26, 8)),
        ("go1.27rc1", ()),
        ("devel go1.28-abcdef", ()),
        ("", ()),
    ],
)
def test_a_release_of_go_is_told_from_what_is_none(said: str, version: tuple[int, ...]) -> None:
    assert toolchain.version_of(said) == version


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
