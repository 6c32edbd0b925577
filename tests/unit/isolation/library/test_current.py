"""Which library new containers get, and when it is built again."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from partage_isolation.errors import NoLibrary
from partage_isolation.library import Installed, install, library_for_new
from partage_isolation.library.current import CURRENT, make_current
from partage_isolation.library.errors import NotInstalled
from partage_isolation.library.objects import OBJECTS
from partage_isolation.library.renewal import Renewal
from partage_isolation.library.renewal import installer as installer_of
from partage_isolation.settings import BrokerSettings
from support.kube import until
from support.shared_objects import shared_object, spare_name

OLDER, NEWER = "older", "newer"


@pytest.fixture
def lib(tmp_path: Path) -> Path:
    return tmp_path / "lib"


@pytest.fixture
def installer(tmp_path: Path, lib: Path) -> Callable[[str], Installed]:
    """Installs the version of that name, on a node without a driver."""
    (tmp_path / "root").mkdir()
    for version in (OLDER, NEWER):
        objects = tmp_path / version
        objects.mkdir()
        for name in OBJECTS:
            (objects / name).write_bytes(shared_object([spare_name(0)]) + version.encode())
    return lambda version: install(lib, tmp_path / "root", objects=tmp_path / version)


def test_what_is_installed_is_current(lib: Path, installer: Callable[[str], Installed]) -> None:
    done = installer(OLDER)
    assert library_for_new(lib) == done.folder
    assert not done.folder.is_symlink()


def test_an_older_version_that_is_installed_again_is_current_again(
    lib: Path, installer: Callable[[str], Installed]
) -> None:
    older, newer = installer(OLDER), installer(NEWER)
    assert library_for_new(lib) == newer.folder
    os.utime(newer.folder)
    assert installer(OLDER) == older
    assert library_for_new(lib) == older.folder


def test_several_at_once_leave_one_of_them_current(lib: Path, installer: Callable[[str], Installed]) -> None:
    begin, seen = threading.Barrier(9), list[Path]()
    versions = {name: installer(name).folder for name in (OLDER, NEWER)}

    def one(name: str) -> None:
        begin.wait()
        for _ in range(10):
            installer(name)

    threads = [threading.Thread(target=one, args=(name,)) for name in (OLDER, NEWER) * 4]
    for thread in threads:
        thread.start()
    begin.wait()
    while any(thread.is_alive() for thread in threads):
        seen.append(library_for_new(lib))  # it always exists
    assert set(seen) <= set(versions.values())
    assert {path.name for path in lib.iterdir()} == {CURRENT, *(folder.name for folder in versions.values())}


@pytest.mark.slow
@pytest.mark.parametrize(("step", "call"), [("rename", 1), ("symlink_to", 1), ("rename", 2)])
def test_one_that_is_killed_between_two_steps_leaves_the_former_current(
    tmp_path: Path, lib: Path, installer: Callable[[str], Installed], step: str, call: int
) -> None:
    before = installer(OLDER).folder
    killed = f"""
import os, signal
from pathlib import Path
from partage_isolation.library import install
real, calls = Path.{step}, []
def die(*arguments):
    calls.append(arguments)
    return os.kill(os.getpid(), signal.SIGKILL) if len(calls) == {call} else real(*arguments)
Path.{step} = die
install(Path({str(lib)!r}), Path({str(tmp_path / "root")!r}), objects=Path({str(tmp_path / NEWER)!r}))
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", killed], env=env, check=False).returncode == -9
    assert library_for_new(lib) == before
    newer = installer(NEWER).folder
    assert library_for_new(lib) == newer
    for left in lib.glob(".new-*"):
        os.utime(left, (0, 0))
    installer(NEWER)
    assert {path.name for path in lib.iterdir()} == {CURRENT, before.name, newer.name}


def test_without_a_library_it_is_told_where_it_should_be_and_what_to_do(lib: Path) -> None:
    with pytest.raises(NoLibrary, match=rf"^no preload library is installed in {lib}, .*--install-library`$"):
        library_for_new(lib)


def test_a_version_that_nobody_made_current_is_none(lib: Path, installer: Callable[[str], Installed]) -> None:
    installer(OLDER)
    (lib / CURRENT).unlink()
    with pytest.raises(NoLibrary, match="no preload library is installed"):
        library_for_new(lib)


def test_a_version_that_is_missing_or_not_whole_is_told(lib: Path, installer: Callable[[str], Installed]) -> None:
    folder = installer(OLDER).folder
    (folder / OBJECTS[1]).unlink()
    with pytest.raises(NoLibrary, match=rf"in {lib}: {CURRENT} names {folder.name}, which is not .*--install"):
        library_for_new(lib)
    shutil.rmtree(folder)
    with pytest.raises(NoLibrary, match="not whole"):
        library_for_new(lib)
    assert installer(OLDER).folder == library_for_new(lib)


@pytest.mark.parametrize("target", ["../x", "..", ".", "x/", "/x", "x/y"])
def test_what_leads_elsewhere_is_no_version(
    tmp_path: Path, lib: Path, installer: Callable[[str], Installed], target: str
) -> None:
    shutil.copytree(installer(OLDER).folder, tmp_path / "x")
    (lib / CURRENT).unlink()
    (lib / CURRENT).symlink_to(target)
    with pytest.raises(NoLibrary, match="is no version"):
        library_for_new(lib)
    installer(NEWER)
    assert library_for_new(lib).name != target


def test_a_file_in_its_place_is_replaced_and_a_folder_is_told(lib: Path, installer: Callable[[str], Installed]) -> None:
    done = installer(OLDER)
    (lib / CURRENT).unlink()
    (lib / CURRENT).write_text(done.version)
    with pytest.raises(NoLibrary):
        library_for_new(lib)
    make_current(lib, done.version)
    assert library_for_new(lib) == done.folder
    (lib / CURRENT).unlink()
    (lib / CURRENT).mkdir()
    with pytest.raises(NotInstalled, match="Is a directory"):
        installer(OLDER)


# ---- Renewal ---------------------------------------------------------------------------------------------------------


class Node:
    """A node whose installer records that it ran, and exits with the code in a file."""

    def __init__(self, root: Path) -> None:
        self._notes, self.ends_with = root / "notes", root / "ends-with"
        code = (
            "import pathlib, sys; open(sys.argv[1], 'a').write('x'); print('no room', file=sys.stderr); "
            "sys.exit(int(pathlib.Path(sys.argv[2]).read_text()))"
        )
        self.ends_with.write_text("0")
        self._work: list[Coroutine[Any, Any, None]] = []
        command = (sys.executable, "-c", code, str(self._notes), str(self.ends_with))
        self._renewal = Renewal(command, "580", start=self._work.append)

    async def has(self, driver: str) -> int:
        """How often it was installed after two looks at the driver."""
        for _ in range(2):
            self._renewal.look(driver)
        for work in self._work:
            await work
        self._work.clear()
        return len(self._notes.read_text()) if self._notes.exists() else 0


async def test_once_for_each_new_driver(tmp_path: Path) -> None:
    node = Node(tmp_path)
    times = [await node.has(driver) for driver in ("580", "", "590", "590", "", "590", "580")]
    assert times == [0, 0, 1, 1, 1, 1, 2]


async def test_a_failure_is_tried_again_but_not_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node, now = Node(tmp_path), 100.0
    monkeypatch.setattr("partage_isolation.library.renewal.time.monotonic", lambda: now)
    node.ends_with.write_text("1")
    assert [await node.has("590"), await node.has("590")] == [1, 1]
    now += 60
    node.ends_with.write_text("0")
    assert [await node.has("590"), await node.has("590")] == [2, 2]


async def test_an_installer_that_hangs_is_ended_with_the_broker(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    tasks: list[asyncio.Task[None]] = []
    renews = Renewal(
        (sys.executable, "-c", code, str(pid)), "", start=lambda work: tasks.append(asyncio.create_task(work))
    )
    renews.look("580")
    await until(lambda: pid.exists() and pid.read_text())
    tasks[0].cancel()
    await asyncio.wait(tasks)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_it_is_the_brokers_own_command_for_the_same_places() -> None:
    settings = BrokerSettings(root=Path("/r"), driver_root=Path("/d"), library_folder=Path("/l"))
    assert installer_of(settings)[1:] == (
        *("-P", "-m", "partage_isolation", "--install-library"),
        *("--root", "/r", "--driver-root", "/d", "--library-folder", "/l"),
    )
