"""What a hostile program can do about the files that load the library: little, and it is detected."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from bench.isolation.place import MIB, Place, a_place
from bench.isolation.programs import programs
from support.isolated import Contained
from support.simgpu import card

pytestmark = pytest.mark.slow

LIMIT_MIB: Final = 1024
OK, OUT_OF_MEMORY = 0, 2
_ENTER: Final = """
set -e
mount --make-rprivate /
mount -t overlay -o lowerdir="$1":/etc none /etc
mount -t tmpfs none /run
mkdir /run/partage
shift
while [ "$1" != -- ]; do
    mount --bind "$1" "$2"
    mount -o remount,bind,ro "$2"
    shift 2
done
shift
exec "$@"
"""


def in_cell(container: Contained, folder: Path, argv: Sequence[str]) -> list[str]:
    """The command that runs `argv` with a container's mounts, read-only, in a mount namespace of its own.

    `folder` holds the files of /etc over which others are mounted.
    """
    folder.mkdir(exist_ok=True)
    for name in ("ld.so.preload", "ld-nix.so.preload"):
        (folder / name).touch()
    mounts = [word for mount in container.prepared.mounts for word in (mount.host_path, mount.container_path)]
    return ["unshare", "--mount", "sh", "-c", _ENTER, "cell", str(folder), *mounts, "--", *argv]


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """A node with one card."""
    with a_place(cards=(card("h100", context_mib=64),)) as made:
        yield made


def bare(place: Place) -> dict[str, str]:
    """Only the variable that locates the simulated driver."""
    return {"LD_LIBRARY_PATH": str(place.node.libraries), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}


def asked(place: Place, argv: Sequence[str], *orders: str) -> list[dict[str, Any]]:
    """Answers of `taking` in an empty environment."""
    text = "".join(f"{order}\n" for order in orders)
    done = subprocess.run(argv, env=bare(place), input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()][1:]


def taking() -> str:
    return str(programs() / "taking")


def test_without_any_variable_a_program_is_metered(place: Place, tmp_path: Path) -> None:
    container = place.container(memory_mib=LIMIT_MIB)
    view, some, much = asked(place, in_cell(container, tmp_path / "etc", [taking()]), "view", "take 512", "take 512")
    assert view["total"] == container.limit
    assert (some["result"], much["result"]) == (OK, OUT_OF_MEMORY)


@pytest.mark.parametrize(
    "attempt",
    [
        "umount /etc/ld.so.preload",
        "rm /etc/ld.so.preload",
        "echo > /etc/ld.so.preload",
        "rm /run/partage/broker",
        "mount -o remount,bind,rw /run/partage/lib",
    ],
)
def test_in_a_namespace_of_its_own_a_program_cannot_take_our_files_away(
    place: Place, tmp_path: Path, attempt: str
) -> None:
    container = place.container(memory_mib=LIMIT_MIB)
    argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f"{attempt} 2>/dev/null; exec {taking()}"]
    view, much = asked(place, in_cell(container, tmp_path / "etc", argv), "view", "take 1024")
    assert view["total"] == container.limit
    assert much["result"] == OUT_OF_MEMORY


def covered(container: Contained, folder: Path) -> list[str]:
    """A program that has mounted an empty folder over ours, and so runs without limits."""
    covering = f"mount -t tmpfs none /run/partage && exec {taking()}"
    argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", covering]
    return in_cell(container, folder, argv)


def test_who_covers_our_files_is_found(place: Place, tmp_path: Path) -> None:
    container, beside = place.container(memory_mib=LIMIT_MIB), place.container(memory_mib=LIMIT_MIB)
    process = subprocess.Popen(
        covered(container, tmp_path / "etc"),
        env=bare(place),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        bufsize=1,
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.stdin.write("take 4096\n")
        assert json.loads(process.stdout.readline())["result"] == OK  # nothing prevents this
        place.until("it is found", lambda: place.findings)
        (much,) = asked(place, in_cell(beside, tmp_path / "etc", [taking()]), "take 512")
        assert much["result"] == OK
    finally:
        process.kill()
        process.communicate()
    assert beside.told().cards[0].limit_bytes == LIMIT_MIB * MIB
