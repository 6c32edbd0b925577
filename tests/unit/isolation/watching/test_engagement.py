"""Processes of this machine: whether a file is mapped in them, what they see, and which are gone."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from partage_isolation.audit.engagement import Engagement, Scan, Wanted
from partage_isolation.audit.facts import ProcessFacts
from partage_isolation.audit.listing import Listing, RuntimeContainer
from partage_isolation.audit.mounts import MOST_MAPS, MOST_MOUNTS, InstalledFiles, Places, read_bounded
from partage_isolation.audit.proofs import birth
from partage_isolation.store.folders import OBJECTS
from partage_plugins.api.names import CardId
from unit.isolation.watching.scenes import KEY, row

CARD = CardId("GPU-1")
ID = "ab" * 32


@dataclass
class Clock:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Stage:
    """A /proc in which processes are in the control groups that a test chooses."""

    root: Path
    clock: Clock = field(default_factory=Clock)

    @property
    def library(self) -> Path:
        return self.root / "library/1.0" / OBJECTS[0]

    def __post_init__(self) -> None:
        self.library.parent.mkdir(parents=True)
        self.library.write_bytes(b"\x7fELF" + bytes(8192))
        (self.root / "proc").mkdir()
        self.engagement = Engagement(
            InstalledFiles(self.root / "library", self.root), proc=self.root / "proc", clock=self.clock
        )

    def show(self, pid: int, *, container: str | None = ID) -> None:
        folder = self.root / "proc" / str(pid)
        (folder / "ns").mkdir(parents=True)
        for name in ("stat", "maps", "mountinfo", "ns/mnt"):
            (folder / name).symlink_to(f"/proc/{pid}/{name}")
        (folder / "cgroup").write_text(f"0::/kubepods/pod1/{container}\n" if container else "0::/user.slice\n")

    def look(self, *pids: int, rows: Mapping[int, tuple[ProcessFacts, ...]] | None = None) -> Scan:
        containers = Listing([RuntimeContainer(ID, KEY, None, running=True)])
        return self.engagement.look(Wanted(pids, containers, frozenset({KEY}), rows or {}))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def mapped(stage: Stage) -> Iterator[None]:
    """The library is mapped into this process, as an executable file."""
    protection = mmap.PROT_READ | mmap.PROT_EXEC
    with stage.library.open("rb") as file, mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, protection):
        yield


def own_row(*, connected: bool = True) -> Mapping[int, tuple[ProcessFacts, ...]]:
    born = birth(Path("/proc/self/stat").read_text())
    assert born is not None
    return {os.getpid(): (ProcessFacts(os.getpid(), born.start, KEY, connected, {}),)}


@pytest.mark.usefixtures("mapped")
def test_a_process_with_the_library_is_seen_with_it(stage: Stage) -> None:
    stage.show(os.getpid())
    seen = stage.look(os.getpid()).sights[os.getpid()]
    assert seen.has_library is True
    assert seen.key == KEY
    assert seen.wrong_places == ("/run/partage", "/run/partage/lib", "/etc/ld.so.preload")


def test_a_process_without_it_is_seen_without_it(stage: Stage) -> None:
    stage.show(os.getpid())
    assert stage.look(os.getpid()).sights[os.getpid()].has_library is False


def test_a_file_of_the_same_name_is_not_the_library(stage: Stage) -> None:
    other = stage.root / "elsewhere" / OBJECTS[0]
    other.parent.mkdir()
    other.write_bytes(stage.library.read_bytes())
    stage.show(os.getpid())
    protection = mmap.PROT_READ | mmap.PROT_EXEC
    with other.open("rb") as file, mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, protection):
        assert stage.look(os.getpid()).sights[os.getpid()].has_library is False


def test_without_an_installed_library_nothing_is_said_of_anybody(stage: Stage) -> None:
    stage.library.unlink()
    stage.show(os.getpid())
    assert stage.look(os.getpid()).sights[os.getpid()].has_library is None


def test_a_process_in_no_container_of_ours_is_somebody_and_no_more(stage: Stage) -> None:
    stage.show(os.getpid(), container=None)
    seen = stage.look(os.getpid()).sights[os.getpid()]
    assert (seen.key, seen.has_library, seen.wrong_places) == (None, None, None)


def test_a_process_that_is_gone_is_not_seen(stage: Stage) -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    stage.show(process.pid)
    process.wait()
    looked = stage.look(process.pid, rows={process.pid: (row(process.pid, 1, connected=False),)})
    assert looked.sights == {}
    assert looked.gone == {process.pid}


def test_a_zombie_has_no_library_to_be_missed(stage: Stage) -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE) as process:
        stage.show(process.pid)
        assert process.stdout is not None
        process.stdout.read()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        seen = stage.look(process.pid).sights.get(process.pid)
        assert seen is None or seen.has_library is None


def test_rows_of_another_process_of_that_pid_are_gone(stage: Stage) -> None:
    stage.show(os.getpid())
    pid = os.getpid()
    assert stage.look(rows={pid: (row(pid, 1, connected=False),)}).gone == {pid}, "it began at another time"
    assert stage.look(rows=own_row(connected=False)).gone == frozenset()


def test_the_first_process_of_a_container_must_be_in_it(stage: Stage) -> None:
    def first_seen(container: str) -> Mapping[str, object]:
        containers = Listing([RuntimeContainer(container, KEY, os.getpid(), running=True)])
        return stage.engagement.look(Wanted((), containers, frozenset({KEY}), {})).first_seen

    stage.show(os.getpid())
    assert first_seen(ID).keys() == {ID}
    assert first_seen("cd" * 32) == {}


def test_of_a_container_whose_pid_the_runtime_does_not_tell_any_process_stands_for_the_first(stage: Stage) -> None:
    pid = os.getpid()
    stage.show(pid)
    stage.look()
    assert stage.look().first_seen[ID].pid == pid


@pytest.mark.usefixtures("mapped")
def test_maps_are_read_again_only_now_and_then_of_who_is_connected(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, read = os.getpid(), list[str]()
    stage.show(pid)

    def counted(path: Path, most: int) -> str:
        read.append(path.name)
        return read_bounded(path, most)

    stage.look()  # learns the name of the library in maps
    monkeypatch.setattr("partage_isolation.audit.engagement.read_bounded", counted)
    monkeypatch.setattr(Places, "wrong", lambda *_, **_with: ())
    for rows, again_after_s, times in ((own_row(), 0, 1), (own_row(), 31, 2), (own_row(connected=False), 0, 3)):
        read.clear()
        stage.clock.now_s += 1000
        stage.look(pid, rows=rows)
        stage.clock.now_s += again_after_s
        stage.look(pid, rows=rows)
        stage.look(pid, rows=rows)
        assert read.count("maps") == times


def test_a_process_that_holds_up_whoever_reads_its_maps_is_not_asked_again(stage: Stage) -> None:
    """A pipe without a writer stands for locked memory."""
    pid = os.getpid()
    stage.show(pid)
    maps = stage.root / f"proc/{pid}/maps"
    maps.unlink()
    os.mkfifo(maps)
    first = threading.Thread(target=stage.look, args=(pid,))
    first.start()
    while stage.engagement.give_up() is None:
        os.sched_yield()
    seen = stage.look(pid).sights[pid]
    assert (seen.key, seen.has_library) == (KEY, None)
    os.close(os.open(maps, os.O_RDWR | os.O_NONBLOCK))  # a blocked reader goes on
    first.join()


@pytest.mark.usefixtures("mapped")
@pytest.mark.parametrize(
    ("name", "what", "most"), [("maps", "mappings", MOST_MAPS), ("mountinfo", "mounts", MOST_MOUNTS)]
)
def test_of_who_has_too_much_to_read_that_is_told(stage: Stage, name: str, what: str, most: int) -> None:
    pid = os.getpid()
    stage.show(pid)
    stage.look()
    file = stage.root / f"proc/{pid}/{name}"
    text = file.read_text()
    file.unlink()
    file.write_text(text + "x" * (most - len(text)))
    assert stage.look(pid).sights[pid].too_long == ()
    file.write_text(text + "x" * (most + 1 - len(text)))
    seen = stage.look(pid).sights[pid]
    assert seen.too_long == (what,)
    assert (seen.has_library, seen.wrong_places)[name == "mountinfo"] is None


def test_who_has_a_device_open_and_too_many_mounts_is_seen_before_a_card_shows_it(stage: Stage) -> None:
    pid = os.getpid()
    stage.show(pid)
    folder = stage.root / f"proc/{pid}"
    (folder / "fd").mkdir()
    (folder / "fd/3").symlink_to("/dev/nvidia0")
    (folder / "mountinfo").unlink()
    (folder / "mountinfo").write_text("x" * (MOST_MOUNTS + 1))
    assert stage.look().sights[pid].too_long == ("mounts",)


def test_who_has_a_device_open_is_looked_at_before_a_card_shows_it(stage: Stage) -> None:
    pid = os.getpid()
    stage.show(pid)
    assert stage.look().sights == {}
    (stage.root / f"proc/{pid}/fd").mkdir()
    (stage.root / f"proc/{pid}/fd/0").symlink_to("/dev/pts/0")
    assert stage.look().sights == {}
    (stage.root / f"proc/{pid}/fd/3").symlink_to("/dev/nvidia0")
    for _ in range(3):
        seen = stage.look().sights[pid]
        assert (seen.has_library, bool(seen.wrong_places)) == (None, True)


def test_all_processes_come_in_turn(stage: Stage) -> None:
    for pid in range(100_000, 100_200):
        (stage.root / f"proc/{pid}").mkdir(parents=True)
    pid = os.getpid()
    stage.show(pid)
    (stage.root / f"proc/{pid}/fd").mkdir()
    (stage.root / f"proc/{pid}/fd/3").symlink_to("/dev/nvidia0")
    assert any(stage.look().sights for _ in range(4))
