"""The dynamic linker's cache is read as far as it is valid, and no byte beyond it."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.extent import examples

pytestmark = pytest.mark.slow  # compiles, and starts a process for each example

HERE: Final = Path(__file__).parent
MAGIC: Final = b"glibc-ld.so.cache1.1"
OURS: Final = {"x86_64": 0x303, "aarch64": 0xA03}[os.uname().machine]
HEADER, ENTRY = struct.Struct("<20sII20s"), struct.Struct("<iIIIQ")
PATHS: Final = ("/usr/lib64/libcuda.so.1", "/opt/driver/libcuda.so.1")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("reader") / "reader"
    options = ["-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["cc", *options, "-o", str(program), str(HERE / "cache_reader.c")], check=True)
    return program


def cache(entries: Sequence[tuple[int, str, str]], *, old: bool = False) -> bytes:
    """A cache with flags, name and path of each entry; `old` puts an older table before it, as old systems do."""
    text, places = b"", []
    start = HEADER.size + ENTRY.size * len(entries)
    for flags, name, path in entries:
        places.append((flags, start + len(text), start + len(text) + len(name) + 1))
        text += name.encode() + b"\0" + path.encode() + b"\0"
    packed = b"".join(ENTRY.pack(flags, name, path, 0, 0) for flags, name, path in places)
    whole = HEADER.pack(MAGIC, len(entries), len(text), bytes(20)) + packed + text
    before = struct.pack("<12sI", b"ld.so-1.7.0\0", 3) + bytes(36)
    return before.ljust((len(before) + 7) & ~7, b"\0") + whole if old else whole


WHOLE: Final = [(OURS, "libm.so.6", "/lib/libm.so.6"), *((OURS, "libcuda.so.1", path) for path in PATHS)]


def read(reader: Path, *contents: bytes, library: str = "libcuda.so.1") -> list[list[str]]:
    asked = b"".join(struct.pack("<I", len(content)) + content for content in contents)
    done = subprocess.run([reader, library], input=asked, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return [line.decode(errors="replace").split() for line in done.stdout.split(b"\n")[: len(contents)]]


@pytest.mark.parametrize("old", [False, True])
def test_paths_are_found_in_order(reader: Path, old: bool) -> None:  # noqa: FBT001
    assert read(reader, cache(WHOLE, old=old)) == [list(PATHS)]


def test_libraries_of_other_architectures_are_passed_over(reader: Path) -> None:
    entries = [(flags, "libcuda.so.1", PATHS[0]) for flags in (1, 3, 0x203, 0x803, OURS ^ 0x900)]
    assert read(reader, cache(entries)) == [[]]


def test_this_machines_own_is_understood(reader: Path) -> None:
    (found,) = read(reader, Path("/etc/ld.so.cache").read_bytes(), library="libc.so.6")
    assert [Path(path).is_file() for path in found] == [True]


@pytest.mark.parametrize("old", [False, True])
def test_one_that_ends_early_is_read_to_its_end_at_most(reader: Path, old: bool) -> None:  # noqa: FBT001
    content = cache(WHOLE, old=old)
    for found in read(reader, *(content[:end] for end in range(len(content)))):
        assert found in ([], [PATHS[0]])


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_one_with_other_numbers_in_it_is_survived(reader: Path, data: st.DataObject) -> None:
    contents: list[bytes] = []
    for _ in range(50):
        content = bytearray(cache(WHOLE, old=data.draw(st.booleans())))
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(0, len(content) - 4))
            number = data.draw(st.sampled_from((0, 1, 7, 2**31 - 1, 2**31, 2**32 - 1, len(content), len(content) - 1)))
            struct.pack_into("<I", content, place, number)
        contents.append(bytes(content))
    read(reader, *contents)
