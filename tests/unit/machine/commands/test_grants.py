"""`partage grant`, `revoke` and `grants` before a scripted manager, with engines that say what a test has them say."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from partage_cli.machine.wire.messages import (
    Allow,
    DoneGrants,
    Grant,
    GrantStatus,
    ListGrants,
    No,
    Question,
    Revoke,
)
from support.scripted_manager import Said, scripted
from unit.cli.program import partage

WEB: Final = GrantStatus(
    name="web",
    uid="5f0c",
    device="partage.dev/share=5f0c",
    grants=(Grant(card="GPU-0", index=0, share_milli=300, limit_milli=500, memory_bytes=4 << 30, used_bytes=1 << 30),),
    containers=("1a" * 32,),
)
DOCKER: Final = json.dumps({"ServerVersion": "28.2.2", "CDISpecDirs": ["/etc/cdi", "/var/run/cdi"]})


def script(question: Question) -> Iterable[Said]:
    """A machine with one grant, `web`, that a container has."""
    match question:
        case Allow():
            return (DoneGrants(grants=(replace(WEB, containers=()),)),)
        case Revoke(name="web", force=force):
            return (DoneGrants(grants=() if force else (WEB,)),)
        case Revoke():
            return (No(code="unknown-name", why="there is no grant of that name"),)
        case _:
            return (DoneGrants(grants=(WEB,)),)


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def engine(folder: Path, name: str, says: str, *, code: int = 0, errors: str = "") -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{says}'\necho '{errors}' >&2\nexit {code}\n")
    program.chmod(0o755)


def ran(*arguments: str) -> tuple[subprocess.CompletedProcess[str], list[Question]]:
    with scripted(script) as manager:
        return partage(manager.root, *arguments), manager.asked


def test_the_flag_alone_goes_out_so_that_a_shell_can_pass_it_on(engines: Path) -> None:
    engine(engines, "docker", DOCKER)
    done, asked = ran("grant", "--share", "300", "--memory", "4Gi", "--limit", "500", "--name", "web", "--keep")
    assert asked == [Allow(name="web", share=300, limit=500, memory="4Gi", keep=True)]
    assert (done.stdout, done.returncode) == ("--device partage.dev/share=5f0c\n", 0)
    assert done.stderr == (
        "web has 30 % and 4 GiB of card 0 until it is revoked: partage revoke web, as in: "
        "docker run --device partage.dev/share=5f0c IMAGE\n"
    )


def test_the_first_engine_that_can_is_named(engines: Path) -> None:
    engine(engines, "docker", "", code=1, errors="Cannot connect to the Docker daemon")
    engine(engines, "podman", json.dumps({"host": {}, "version": {"Version": "4.3.1"}}))
    assert "podman run --device" in ran("grant", "--share", "300")[0].stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "docker 24.0.7 puts no CDI devices into containers; 25 is the first that can: upgrade it"),
        (("--engine", "podman"), "no podman is on the PATH"),
    ],
)
def test_engines_that_can_not_are_refused_in_words_and_nothing_is_asked(
    engines: Path, words: tuple[str, ...], why: str
) -> None:
    engine(engines, "docker", json.dumps({"ServerVersion": "24.0.7"}))
    done, asked = ran("grant", "--share", "300", *words)
    assert (done.returncode, done.stdout, asked) == (1, "", [])
    assert done.stderr.startswith("partage: ")
    assert why in done.stderr


def test_without_any_engine_it_says_what_else_there_is(engines: Path) -> None:
    done, _ = ran("grant", "--share", "300")
    assert "no docker or podman is on the PATH" in done.stderr
    assert "partage run" in done.stderr
    assert ran("grant", "--share", "300", "--engine", "other")[0].stdout == "--device partage.dev/share=5f0c\n"
    assert list(engines.iterdir()) == []


def test_without_a_manager_it_says_how_to_start_one(engines: Path, tmp_path: Path) -> None:
    engine(engines, "docker", DOCKER)
    done = partage(tmp_path, "grant", "--share", "300")
    assert done.returncode == 1
    assert "start it with: sudo partage up" in done.stderr


def test_a_revocation_says_who_has_it_still() -> None:
    done, asked = ran("revoke", "web")
    assert (done.stdout, done.returncode, asked) == ("web\n", 0, [Revoke(name="web")])
    assert done.stderr == "web ends with those that have it: 1a1a1a1a1a1a; --force kills them\n"
    assert ran("revoke", "--force", "web")[0].stderr == ""


def test_an_unknown_name_keeps_the_others_from_nothing() -> None:
    done, _ = ran("revoke", "wbe", "web")
    assert (done.stdout, done.returncode) == ("web\n", 1)
    assert "partage: there is no grant of that name\n" in done.stderr


def test_grants_are_a_table_for_people_and_json_for_programs() -> None:
    done, asked = ran("grants")
    assert asked == [ListGrants()]
    header, row = done.stdout.splitlines()
    assert header.split() == ["NAME", "STATUS", "SHARE", "LIMIT", "MEMORY", "USED", "CARD", "CONTAINERS", "DEVICE"]
    assert " ".join(row.split()) == ("web In use 30 % 50 % 4 GiB 1 GiB 0 1a1a1a1a1a1a partage.dev/share=5f0c")
    assert json.loads(ran("grants", "-o", "json")[0].stdout)["grants"][0]["name"] == "web"
