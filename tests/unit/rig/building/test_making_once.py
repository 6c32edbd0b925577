"""A program is made once: what is complete is found again, what is not is never taken for it."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rig.programs import catalogue, ensure, golang
from rig.programs.recipes import GoProgram, GoRecipe
from rig.errors import BuildFailed, RigError
from support.fake_programs import VERSION, Fake


def ignored(_: str) -> None:
    """What is said is not the point of the test."""


def test_what_was_made_is_found_at_an_absolute_path_and_runs(fake: Fake) -> None:
    path = ensure("etcd", say=ignored)["etcd"]
    assert path == fake.entry / "bin/etcd"
    assert path.is_absolute()
    assert VERSION in subprocess.run([path], capture_output=True, text=True, check=True).stdout


def test_a_full_cache_starts_nothing(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ensure("etcd", say=ignored)
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("it started a program"))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("it ran a program"))
    assert ensure("etcd", say=pytest.fail) == first
    assert len(fake.calls("build")) == 1


def test_each_component_keeps_what_settled_its_dependencies(fake: Fake) -> None:
    ensure("etcd", say=ignored)
    assert {path.name for path in fake.entry.iterdir()} == {"bin", "go.mod", "go.sum"}


def test_a_failure_shows_the_end_of_the_log_and_its_path_and_leaves_nothing_to_be_found(fake: Fake) -> None:
    fake.tell("fail", "".join(f"line {n}\n" for n in range(100)) + "undefined: frobnicate\n")
    with pytest.raises(BuildFailed) as failed:
        ensure("etcd", say=ignored)
    first, *tail = str(failed.value).splitlines()
    assert first == (
        f"cannot make etcd {VERSION} (1 of 1): `go build` ended with status 1; try again: it goes on where it stopped"
    )
    log = next((fake.cache.root / "logs").iterdir())
    assert (tail[0], tail[-1]) == (f"--- {log}, its end:", "undefined: frobnicate")
    assert "line 10" not in tail
    assert not fake.entry.exists()
    assert list((fake.cache.root / "work").iterdir()) == []


def test_a_later_build_succeeds_where_one_failed(fake: Fake) -> None:
    fake.tell("fail", "no route to host")
    with pytest.raises(BuildFailed):
        ensure("etcd", say=ignored)
    fake.forget("fail")
    assert ensure("etcd", say=ignored)["etcd"].exists()


def test_an_entry_that_lost_a_program_is_made_anew(fake: Fake) -> None:
    ensure("etcd", say=ignored)["etcd"].unlink()
    assert ensure("etcd", say=ignored)["etcd"].exists()
    assert len(fake.calls("build")) == 2


def test_a_program_that_calls_itself_otherwise_is_not_kept(fake: Fake) -> None:
    fake.tell("says", "etcd Version: unknown\n")
    with pytest.raises(BuildFailed, match=f"etcd should say {VERSION}; it says: etcd Version: unknown"):
        ensure("etcd", say=ignored)
    assert not fake.entry.exists()


OTHERWISE: dict[str, GoRecipe] = {
    "version": replace(catalogue.CONTAINERD, version="2.3.5"),
    "tags": replace(catalogue.CONTAINERD, tags=()),
    "linker's variables": replace(catalogue.CONTAINERD, variables=()),
    "cgo": replace(catalogue.CONTAINERD, cgo=True),
    "programs": replace(catalogue.CONTAINERD, programs=catalogue.CONTAINERD.programs[:1]),
    "staging": replace(catalogue.CONTAINERD, staging=catalogue.KUBERNETES.staging),
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_a_changed_recipe_is_another_entry(what: str) -> None:
    assert golang.key(OTHERWISE[what]) != golang.key(catalogue.CONTAINERD)


def test_how_a_version_is_asked_for_changes_no_entry() -> None:
    asked_otherwise = tuple(GoProgram(each.name, each.package, ("-V",)) for each in catalogue.CONTAINERD.programs)
    assert golang.key(replace(catalogue.CONTAINERD, programs=asked_otherwise)) == golang.key(catalogue.CONTAINERD)


def test_an_unknown_name_is_told_what_there_is(fake: Fake) -> None:
    with pytest.raises(RigError, match=r"nothing named kubelett; there is: default, nvidia, all, runc, .*kubelet, "):
        ensure("kubelett")
    assert fake.calls("build") == []


def test_a_program_that_was_not_asked_for_is_told_how_to_ask(fake: Fake) -> None:
    programs = ensure("etcd", say=ignored)
    with pytest.raises(RigError, match=r"helm was not asked for: name it to rig\.building\.ensure\(\)"):
        programs["helm"]
    with pytest.raises(RigError, match="no program named vim; there is: etcd"):
        programs["vim"]
    assert list(programs) == ["etcd"]
    assert len(fake.calls("build")) == 1


def test_a_cache_that_cannot_be_written_says_how_to_move_it(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PARTAGE_RIG_CACHE", str(tmp_path / "file/cache"))
    with pytest.raises(BuildFailed, match=r"file/cache: .*Not a directory.*; PARTAGE_RIG_CACHE moves it"):
        ensure("etcd", say=ignored)
    assert fake.calls("build") == []
