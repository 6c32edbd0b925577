"""The images that are made of this machine's own programs."""

from __future__ import annotations

import io
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rig import images
from rig.building import ensure
from rig.errors import BuildFailed, MachineUnfit
from rig.images import Image, elf

pytestmark = pytest.mark.slow  # a first run may install compilers


@pytest.fixture(scope="module", autouse=True)
def _programs() -> None:
    ensure("busybox", "gcc", "musl", say=print)


def unpacked(image: Image, folder: Path) -> Path:
    for layer in image.layers:
        with tarfile.open(fileobj=io.BytesIO(layer.content)) as tar:
            tar.extraction_filter = lambda member, _folder: member  # our own
            tar.extractall(folder)  # noqa: S202
    return folder


@pytest.mark.parametrize("make", [images.busybox, images.glibc, images.musl, images.pause])
def test_an_image_made_again_is_the_same_image(make: Callable[[], Image]) -> None:
    first = make()
    make.cache_clear()  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    again = make()
    assert again is not first
    assert again.manifest.digest == first.manifest.digest


def test_busybox_is_one_static_file_with_a_name_for_every_applet(tmp_path: Path) -> None:
    root = unpacked(images.busybox(), tmp_path)
    program = root / "bin/busybox"
    assert elf.loader(program.read_bytes()) is None
    applets = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    assert len(applets) > 100
    for applet in applets:
        assert (root / "bin" / applet).samefile(program), applet
    assert program.stat().st_mode & 0o777 == 0o755


def test_pods_find_the_folders_and_users_that_programs_expect(tmp_path: Path) -> None:
    root = unpacked(images.glibc(), tmp_path)
    assert (root / "tmp").stat().st_mode & 0o7777 == 0o1777
    users = (root / "etc/passwd").read_text()
    assert "root:x:0:0:" in users
    assert "nobody:x:65534:65534:" in users


@pytest.mark.parametrize("make", [images.glibc, images.musl])
def test_a_dynamic_image_holds_the_loader_and_all_libraries_of_its_programs(
    make: Callable[[], Image], tmp_path: Path
) -> None:
    root = unpacked(make(), tmp_path)
    programs = [path for path in (root / "bin").iterdir() if elf.loader(path.read_bytes()) is not None]
    assert programs
    for program in programs:
        for path in elf.needed(program):
            assert (root / path.lstrip("/")).read_bytes() == Path(path).read_bytes(), f"{program.name}: {path}"


def test_the_glibc_image_has_a_dynamic_shell_and_tools(tmp_path: Path) -> None:
    root = unpacked(images.glibc(), tmp_path)
    for name in ("sh", "cat", "ls", "env", "sleep", "sha256sum", "mapped"):
        assert elf.loader((root / "bin" / name).read_bytes()), name


def test_pause_is_static_and_alone() -> None:
    (layer,) = images.pause().layers
    with tarfile.open(fileobj=io.BytesIO(layer.content)) as tar:
        (member,) = tar.getmembers()
    assert member.name == "pause"
    assert images.pause().settings.entrypoint == ("/pause",)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_pause_waits_until_it_is_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen([unpacked(images.pause(), tmp_path) / "pause"]) as pause:
        until(lambda: catches(pause.pid, number))
        assert pause.poll() is None
        pause.send_signal(number)
        assert pause.wait(timeout=5) == 0


def catches(pid: int, number: signal.Signals) -> bool:
    (caught,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt:")]
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_program_that_does_not_compile_is_shown_with_what_the_compiler_said(tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    source.write_text("int main(void) { return nothing; }\n")
    with pytest.raises(BuildFailed, match=r"(?s)cc cannot compile .*wrong\.c:.*nothing"):
        images.compiled(source)


def test_a_compiler_that_is_missing_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineUnfit, match=r"musl-gcc is missing; install musl-tools"):
        images.compiled(tmp_path / "any.c", compiler="musl-gcc")


def test_libraries_of_a_static_program_are_not_asked_for(tmp_path: Path) -> None:
    root = unpacked(images.pause(), tmp_path)
    with pytest.raises(MachineUnfit, match=r"pause is static"):
        elf.needed(root / "pause")


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(MachineUnfit, match=r"no 64-bit little-endian ELF file"):
        elf.loader(b"#!/bin/sh\n")
