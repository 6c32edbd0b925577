"""A program of the rig is built once, even if its builder fails. Everything but `go` is real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rig.client.wait import found
from rig.errors import BuildFailed, MachineUnfit, RigError
from rig.nodes import containerd
from rig.patience import patience_s
from rig.programs import catalogue, debian, ensure, golang
from rig.programs.recipes import Find, GoRecipe, Installed, programs_of
from rig.programs.steps import Lines, Task

TESTS = Path(__file__).parents[2]
VERSION = catalogue.ETCD.version
# With the file `hang` it waits until the file is gone, with `fail` it fails with that text; the built program prints
# `says`.
GO = """#!/bin/sh
echo "$1" >>"$FAKE/calls"
case $1 in
    env) [ "$2" = GOVERSION ] && echo go1.26.8 || echo {}; exit ;;
    get) exit ;;
esac
touch "$FAKE/building"
while [ -e "$FAKE/hang" ]; do sleep 0.05; done
if [ -e "$FAKE/fail" ]; then cat "$FAKE/fail"; exit 1; fi
mkdir -p bin
printf '#!/bin/sh\\ncat "%s/says"\\n' "$FAKE" >bin/server
chmod +x bin/server
"""
Start = Callable[[], subprocess.Popen[str]]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a `go` that builds etcd at once; the cache is empty."""
    go = tmp_path / "fake/bin/go"
    go.parent.mkdir(parents=True)
    go.write_text(GO)
    go.chmod(0o755)
    (tmp_path / "fake/says").write_text(f"etcd Version: {VERSION}\n")
    monkeypatch.setenv("FAKE", str(tmp_path / "fake"))
    monkeypatch.setenv("PATH", f"{go.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PARTAGE_RIG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "fake"


@pytest.fixture
def start(fake: Path) -> Iterator[Start]:
    """Starts a builder from the command line."""
    started: list[subprocess.Popen[str]] = []

    def starting() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rig.programs", "etcd"],
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield starting
    for process in started:
        process.kill()
        process.communicate()


def until(what: Callable[[], object]) -> None:
    found(what, what)


def builds(fake: Path) -> int:
    return (fake / "calls").read_text().split().count("build")


def entry(fake: Path) -> Path:
    return fake.parent / "cache" / golang.key(catalogue.ETCD)


def work(fake: Path) -> list[Path]:
    return list((fake.parent / "cache/work").iterdir())


def processes_of(fake: Path) -> list[int]:
    """The processes that refer to the fake's folder, without the test's own."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"FAKE={fake}".encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:  # it has ended
            continue
    return found


def test_what_was_made_is_found_again(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ensure("etcd", say=print)
    assert first["etcd"] == entry(fake) / "bin/etcd"
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("it started a program"))
    assert ensure("etcd", say=pytest.fail) == first


def test_an_entry_that_lost_a_program_is_made_again(fake: Path) -> None:
    ensure("etcd", say=print)["etcd"].unlink()
    assert ensure("etcd", say=print)["etcd"].exists()
    assert builds(fake) == 2


def test_a_failure_shows_the_end_of_the_log_and_leaves_nothing_to_be_found(fake: Path) -> None:
    (fake / "fail").write_text("dial tcp: no such host\nundefined: frobnicate\n")
    with pytest.raises(BuildFailed) as failed:
        ensure("etcd", say=print)
    first, *_, last = str(failed.value).splitlines()
    assert first.startswith(f"cannot make etcd {VERSION} (1 of 1): `go build` ended with status 1; is there a network?")
    assert last == "undefined: frobnicate"
    assert (entry(fake).exists(), work(fake)) == (False, [])


def test_a_program_of_another_version_is_not_kept(fake: Path) -> None:
    (fake / "says").write_text("etcd Version: unknown\n")
    with pytest.raises(BuildFailed, match=f"etcd should say {VERSION}; it says: etcd Version: unknown"):
        ensure("etcd", say=print)
    assert not entry(fake).exists()


@pytest.mark.parametrize(
    "otherwise",
    [
        replace(catalogue.CONTAINERD, version="2.3.5"),
        replace(catalogue.CONTAINERD, tags=()),
        replace(catalogue.CONTAINERD, variables=()),
        replace(catalogue.CONTAINERD, staging=catalogue.KUBERNETES.staging),
    ],
)
def test_a_changed_recipe_is_another_entry(otherwise: GoRecipe) -> None:
    assert golang.key(otherwise) != golang.key(catalogue.CONTAINERD)


def test_a_release_takes_the_place_of_the_usual_one() -> None:
    chosen = catalogue.chosen(["default", "containerd@debian"])
    assert [recipe for recipe in chosen if recipe.name == "containerd"] == [catalogue.DEBIANS_CONTAINERD]
    assert catalogue.KUBERNETES in chosen


def test_two_releases_of_one_component_are_refused() -> None:
    with pytest.raises(RigError, match="two releases of kubernetes cannot be asked for at once"):
        catalogue.chosen(["kubernetes@1.34.4", "kubernetes@1.37.2"])


@pytest.mark.parametrize("group", sorted(catalogue.GROUPS.keys() - {"all"}))
def test_no_two_programs_of_a_group_have_one_name(group: str) -> None:
    names = [name for recipe in catalogue.chosen([group]) for name in programs_of(recipe)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("major", [1, 2])
def test_a_containerd_is_configured_in_the_format_of_its_time(major: int) -> None:
    """An unknown format ends containerd, but an unknown table is ignored."""
    settings = containerd.Containerd(major=major, runc=Path("/runc"), cni_plugins=Path("/cni"), pause="pause")
    document = tomllib.loads(containerd.config(settings))
    runtime, images = {
        1: ("io.containerd.grpc.v1.cri", "io.containerd.grpc.v1.cri"),
        2: ("io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images"),
    }[major]
    assert document["version"] == major + 1
    assert document["plugins"].keys() == {runtime, images}
    assert document["plugins"][runtime]["containerd"]["runtimes"]["runc"]["options"]["BinaryName"] == "/runc"
    assert document["plugins"][images]["registry"]["config_path"] == containerd.CERTS


def test_without_root_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = Installed("frob", ("frob-tools",), (Find("frob", (str(tmp_path / "frob"),)),))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MachineUnfit, match=r"this machine lacks frob; .*frob-tools"):
        debian.install([lacking], Task("frob", tmp_path / "log", Lines(print)))


@pytest.mark.slow
def test_a_killed_builder_leaves_no_process_and_the_next_one_builds(fake: Path, start: Start) -> None:
    (fake / "hang").touch()
    builder = start()
    until((fake / "building").exists)
    builder.kill()
    builder.wait()
    until(lambda: not processes_of(fake))
    assert not entry(fake).exists()
    (fake / "hang").unlink()
    assert start().wait(patience_s()) == 0
    assert (entry(fake).exists(), work(fake)) == (True, [])


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_builder_ends_what_it_started(
    fake: Path, start: Start, number: signal.Signals, status: int
) -> None:
    (fake / "hang").touch()
    builder = start()
    until((fake / "building").exists)
    builder.send_signal(number)
    _, said = builder.communicate(timeout=patience_s())
    assert (builder.returncode, processes_of(fake), work(fake)) == (status, [], [])
    assert said.splitlines()[-1] == "rig: interrupted; the next run goes on from here"


@pytest.mark.slow
def test_of_two_builders_at_once_one_builds_and_the_other_waits_for_it(fake: Path, start: Start) -> None:
    (fake / "hang").touch()
    first = start()
    until((fake / "building").exists)
    second = start()
    assert second.stderr is not None
    assert f"process {first.pid} makes it; waiting" in second.stderr.readline()
    (fake / "hang").unlink()
    assert (first.wait(patience_s()), second.wait(patience_s()), builds(fake)) == (0, 0, 1)
