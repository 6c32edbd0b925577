"""One checkout reuses what another has built; damaged or differently configured builds are rebuilt."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from partage_base.built_once import built_once, key_of, shared

PROGRAM = b"program"


class Builder:
    """Counts its builds."""

    def __init__(self) -> None:
        self.builds = 0

    def __call__(self, folder: Path) -> None:
        self.builds += 1
        (folder / "link").mkdir()
        (folder / "link/program").write_bytes(PROGRAM)
        (folder / "link/program").chmod(0o755)


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builder:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Builder()


def test_a_second_checkout_has_a_copy_of_the_first_one_s_build(builder: Builder, tmp_path: Path) -> None:
    for checkout in ("one", "two", "two"):
        folder = built_once("key", tmp_path / checkout / "built", builder)
        assert (folder / "link/program").read_bytes() == PROGRAM
        assert (folder / "link/program").stat().st_mode & 0o777 == 0o755
    assert builder.builds == 1


def cut(program: Path) -> None:
    program.write_bytes(PROGRAM[:3])


def no_program(program: Path) -> None:
    program.chmod(0o644)


@pytest.mark.parametrize("damage", [cut, Path.unlink, no_program])
def test_a_damaged_entry_is_built_anew(builder: Builder, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    built_once("key", tmp_path / "one/built", builder)
    damage(shared() / "key/content/link/program")
    for checkout in ("two", "three"):
        folder = built_once("key", tmp_path / checkout / "built", builder)
        assert (folder / "link/program").read_bytes() == PROGRAM
    assert builder.builds == 2


def test_a_build_that_fails_leaves_nothing(builder: Builder, tmp_path: Path) -> None:
    def fails(folder: Path) -> None:
        (folder / "half").touch()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        built_once("key", tmp_path / "one/built", fails)
    assert not (tmp_path / "one/built").exists()
    assert not (shared() / "key").exists()
    built_once("key", tmp_path / "one/built", builder)


def test_of_two_builders_of_a_checkout_one_builds(builder: Builder, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(lambda _: built_once("key", tmp_path / "one/built", builder), range(4)))
    assert (len(folders), builder.builds) == (1, 1)


def test_sources_words_and_flags_of_the_environment_decide_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "main.c"
    source.write_text("int main(void) { return 0; }\n")
    keys = {key_of(sources=[tmp_path]), key_of("CFLAGS=-O2", sources=[tmp_path])}
    monkeypatch.setenv("CFLAGS", "-O3")
    keys.add(key_of(sources=[tmp_path]))
    source.write_text("int main(void) { return 1; }\n")
    keys.add(key_of(sources=[tmp_path]))
    assert len(keys) == 4
