"""Files of Debian's packages are cached as published, or an error says why not. apt is a script here."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rig.errors import BuildFailed, MachineUnfit
from rig.programs import archive
from rig.programs.cache import Cache
from rig.programs.recipes import Archived, Package
from rig.programs.steps import Lines, Task

CONTENT = "what was published"
APT = f"""#!/bin/sh
case "$*" in
    indextargets*) cat "$FAKE/archives" ;;
    *download*) [ -e "$FAKE/gone" ] && exit 100; printf '{CONTENT}' >libfrob1_1.0_amd64.deb ;;
esac
"""
DPKG = """#!/bin/sh
mkdir -p "$3/usr/lib"
echo library >"$3/usr/lib/libfrob.so.1.0"
"""
pytestmark = pytest.mark.skipif(os.uname().machine != archive.MACHINE, reason=f"packages are for {archive.MACHINE}")


def recipe(*, content: str = CONTENT, inside: str = "usr/lib/libfrob.so.1.0") -> Archived:
    digest = hashlib.sha256(content.encode()).hexdigest()
    return Archived("frob-1", "sid", "main", "1.0", (Package("libfrob1", digest, inside, "libfrob.so.1"),))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an apt with one package."""
    folder = tmp_path / "fake"
    (folder / "bin").mkdir(parents=True)
    for name, text in (("apt-get", APT), ("dpkg-deb", DPKG)):
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    (folder / "archives").write_text("https://one.example/other/\nhttps://two.example/debian/\n")
    monkeypatch.setenv("FAKE", str(folder))
    monkeypatch.setenv("PATH", f"{folder}/bin{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.fixture
def fetch(tmp_path: Path) -> Callable[[Archived], Path]:
    def fetched(wanted: Archived) -> Path:
        cache = Cache(tmp_path / "cache")
        archive.fetch(wanted, cache, Task(wanted.name, cache.log("log"), Lines(print)))
        (path,) = archive.archived(wanted, cache).values()
        return path

    return fetched


def left(fake: Path) -> list[str]:
    """The cache's content, without locks and logs."""
    return [path.name for path in (fake.parent / "cache").glob("frob*")]


@pytest.mark.usefixtures("fake")
def test_files_lie_where_a_system_has_its_libraries(fetch: Callable[[Archived], Path]) -> None:
    path = fetch(recipe())
    assert path.read_text() == "library\n"
    assert path.parts[-4:] == ("usr", "lib", "x86_64-linux-gnu", "libfrob.so.1")


@pytest.mark.parametrize("wrong", [recipe(content="something else"), recipe(inside="usr/lib/libfrob.so.2.0")])
def test_a_package_of_other_content_is_a_failure(
    fake: Path, fetch: Callable[[Archived], Path], wrong: Archived
) -> None:
    with pytest.raises(BuildFailed, match=r"libfrob1_1\.0_amd64\.deb"):
        fetch(wrong)
    assert left(fake) == []


@pytest.mark.parametrize(("file", "content"), [("gone", ""), ("archives", "https://one.example/other/\n")])
def test_what_cannot_be_had_is_told_in_one_line(
    fake: Path, fetch: Callable[[Archived], Path], file: str, content: str
) -> None:
    (fake / file).write_text(content)
    with pytest.raises(MachineUnfit, match=r"^frob-1.*(can't be had|archive of Debian)") as unfit:
        fetch(recipe())
    assert "\n" not in str(unfit.value)
    assert left(fake) == []
