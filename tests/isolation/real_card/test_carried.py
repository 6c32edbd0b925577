"""Runs on a machine that has a card for fifteen minutes: a folder is copied there, asks, is interrupted, and resumes.

The machine is a root without compiler, network, git and checkout, and its card is simulated.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from real_card import result
from real_card.carry import MOST_BYTES
from real_card.ground import ROOT
from real_card.result import NO_TIME
from real_card.rows import EVERY
from support.isolated import until
from support.processes import started_with

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("unshare") is None or os.geteuid() != 0, reason="needs unshare, and root"),
]

BEFORE_THE_KILL = 6
PYTHON = "{}.{}".format(*sys.version_info[:2])


SHOWN: Final = "/shown"
_PROGRAMS: Final = ("bash", "dirname", "env")
_ENTER: Final = r"""
set -e
root=$1 shown=$2 python=$3 prefix=$4 programs=$5; shift 5
mount -t tmpfs -o mode=755 none "$root"
mkdir -p "$root"/usr/bin "$root"/usr/lib "$root"/proc "$root"/dev "$root"/tmp "$root"/shown "$root$prefix"/bin
for name in bin lib lib64; do [ ! -L /$name ] || ln -s usr/$name "$root"/$name; done
for folder in /proc /dev /usr/lib /usr/lib64 /lib /lib64 "$prefix"/lib; do
    [ -d $folder ] && [ ! -L $folder ] || continue
    mkdir -p "$root"$folder
    mount --rbind $folder "$root"$folder
done
for program in $programs; do cp "$program" "$root"/usr/bin; done
cp "$python" "$root$prefix"/bin/python3
mount --bind "$shown" "$root"/shown
exec chroot "$root" /usr/bin/env -i HOME=/tmp PATH="$prefix"/bin:/usr/bin:/bin "$@"
"""


def in_bare_root(folder: Path, shown: Path, argv: Sequence[str], **variables: str) -> list[str]:
    """The command that runs `argv` on a bare machine; `shown` is mounted at `/shown`."""
    programs = " ".join(str(shutil.which(name)) for name in _PROGRAMS)
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    words = [str(folder), str(shown), str(python), sys.base_prefix, programs]
    environment = [f"{name}={value}" for name, value in variables.items()]
    enter = ["unshare", "--mount", "--net", "--propagation", "private", "sh", "-c", _ENTER, "-"]
    return [*enter, *words, *environment, *argv]


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("carried") / "carried"
    argv = [str(ROOT / "tools/real"), "carry", "--python", PYTHON, "--to", str(folder)]
    subprocess.run(argv, check=True)
    return folder


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_checkout_without_an_environment_asks_by_the_folder_that_is_of_its_commit(
    carried: Path, tmp_path: Path
) -> None:
    for name in ("tools", "tests/real_card", "isolation/driver"):
        shutil.copytree(ROOT / name, tmp_path / name)
    there = tmp_path / ".cache/real/carried"
    there.parent.mkdir(parents=True)
    there.symlink_to(carried)
    listing = [str(tmp_path / "tools/real"), "--list"]

    def listed() -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PARTAGE_REAL_PYTHON": sys.executable}
        return subprocess.run(listing, env=environment, capture_output=True, text=True, check=False)

    missing = listed()
    assert missing.returncode == 1
    assert "this checkout is another one" in missing.stderr
    for source in (line.split("  ", 1)[1] for line in (carried / "sums").read_text().splitlines()):
        if not source.startswith("built/"):
            (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(carried / source, tmp_path / source)
    assert listed().stdout.splitlines()[0].startswith(EVERY[0].name)
    (tmp_path / "tests/real_card/row.py").write_text("newer")
    assert "tests/real_card/row.py differs; run `tools/real carry` again" in listed().stderr


@pytest.mark.extended("asks a simulated card for eight minutes; test_simulated asks a row of each kind")
def test_it_answers_in_its_time_and_loses_nothing_to_a_kill(carried: Path, tmp_path: Path) -> None:
    root, mark = tmp_path / "root", f"ASKED_BY={tmp_path}"
    assert size_of(carried) <= MOST_BYTES
    root.mkdir()
    name, _, value = mark.partition("=")

    def asking(*flags: str) -> subprocess.Popen[str]:
        argv = [f"{SHOWN}/tools/real", "--simulated", "h100", *flags]
        return subprocess.Popen(in_bare_root(root, carried, argv, **{name: value}), stdout=subprocess.PIPE, text=True)

    with asking("--minutes", "4", "--out", f"{SHOWN}/first.json") as first:
        assert first.stdout
        said = [first.stdout.readline().split()[3] for _ in range(BEFORE_THE_KILL)]
        first.kill()
    kept = result.read(carried / "first.json")
    assert {each.row for each in kept.answers} >= set(said)
    until(lambda: started_with(mark) == [])

    with asking("--missing", f"{SHOWN}/first.json", "--out", f"{SHOWN}/second.json") as second:
        last = second.communicate()[0].splitlines()[-1]
    found = result.read(carried / "second.json")
    answers = {each.row: each for each in found.answers}
    assert set(answers) == {row.name for row in EVERY}, last
    assert [each.row for each in found.answers if each.state != "answered" and not each.found] == []
    begun = [each for each in found.answers if each.state != NO_TIME and "is not installed" not in each.found]
    assert sum(each.state == "answered" for each in begun) >= 0.8 * len(begun), last
    assert [run.left_as_found for run in found.runs.values()] == [False, True]
    assert {run.commit for run in found.runs.values()} == {(carried / "commit").read_text().strip()}
    assert started_with(mark) == []
