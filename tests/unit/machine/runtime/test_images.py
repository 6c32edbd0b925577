"""Which images an archive has, how a fetch goes on, and one line for each thing that can be wrong."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from partage_cli.machine.runtime.archives import ImageAway, contents_of, read_contents
from partage_cli.machine.runtime.images import Download, Tally

NAMED = b'{"manifests":[{"annotations":{"io.containerd.image.name":"docker.io/library/a:1"}},{"annotations":{}}]}'
FULL = b'{"manifests":[{"annotations":{"org.opencontainers.image.ref.name":"localhost/a:1"}}]}'
TAGS = b'{"manifests":[{"annotations":{"org.opencontainers.image.ref.name":"v1"}}]}'
DOCKER = b'[{"Config":"x","RepoTags":["busybox:latest","busybox:latest","r.io/a:2"],"Layers":[]},{"RepoTags":null}]'


@pytest.mark.parametrize(
    ("docker", "index", "names", "base"),
    [
        (DOCKER, None, ("docker.io/library/busybox:latest", "r.io/a:2"), ""),
        (None, NAMED, ("docker.io/library/a:1",), ""),
        (None, FULL, ("localhost/a:1",), ""),
        (None, TAGS, ("docker.io/library/my-image:v1",), "docker.io/library/my-image"),
        (DOCKER, TAGS, ("docker.io/library/busybox:latest", "r.io/a:2"), ""),
        (DOCKER, NAMED, ("docker.io/library/a:1",), ""),
    ],
)
def test_an_archives_lists_name_its_images(
    docker: bytes | None, index: bytes | None, names: tuple[str, ...], base: str
) -> None:
    found = contents_of(Path("/x/My_image.tar.gz"), docker=docker, index=index)
    assert (found.names, found.base_name) == (names, base)


@pytest.mark.parametrize(
    ("docker", "index"),
    [
        (None, None),
        (b"[]", None),
        (b"{", None),
        (b'[{"RepoTags":["Not A Name"]}]', None),
        (None, b"[" * 100_000),
        (None, b"{}"),
        (None, b"\xff"),
    ],
)
def test_an_archive_without_names_is_refused_in_one_line(docker: bytes | None, index: bytes | None) -> None:
    with pytest.raises(ImageAway) as away:
        contents_of(Path("/x/a.tar"), docker=docker, index=index)
    assert str(away.value).startswith("/x/a.tar: ")
    assert "\n" not in str(away.value)


def archive(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as made:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return path


def test_archives_packed_or_not_and_folders_are_read_alike(tmp_path: Path) -> None:
    files = {"blobs/sha256/1": b"x", "./manifest.json": DOCKER}
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/manifest.json").write_bytes(DOCKER)
    for path in (archive(tmp_path / "a.tar", files), archive(tmp_path / "a.tar.gz", files), tmp_path / "folder"):
        assert read_contents(path).names == ("docker.io/library/busybox:latest", "r.io/a:2")


def test_what_is_no_archive_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive")
    (tmp_path / "cut.tar.gz").write_bytes(archive(tmp_path / "a.tar.gz", {"x": b"y" * 9999}).read_bytes()[:60])
    (tmp_path / "empty").mkdir()
    for name in ("text", "cut.tar.gz", "empty", "none"):
        with pytest.raises(ImageAway, match=name):
            read_contents(tmp_path / name)


def test_a_list_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(ImageAway, match="longer than"):
        read_contents(archive(tmp_path / "a.tar", {"manifest.json": b" " * (5 << 20)}))


def test_what_was_fetched_and_is_gone_counts_as_done() -> None:
    tally = Tally()
    assert tally.seen((Download("a", 10, 100), Download("b", 0, 50))) == (10, 150)
    assert tally.seen((Download("b", 25, 50), Download("c", 1, 7))) == (126, 157)
    assert tally.seen(()) == (157, 157)
