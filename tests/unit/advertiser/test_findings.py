"""The broker's findings are reported once, in plain words, for any content of its folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from partage_advertiser.findings import FindingsFolder
from partage_base.findings import FINDINGS_FOLDER, MAX_BYTES, Findings, Problem, encode_findings
from partage_plugins.api.names import ContainerName, Namespace, PodName, PodUid
from partage_plugins.api.pods import PodRef

COVERED = Problem("CoveredMounts", "what partage mounted at /run/partage is covered", stops=True)
LIBRARY = Problem("ProcessWithoutLibrary", "a process uses card GPU-1 without partage's library", stops=False)
POD = PodRef(namespace=Namespace("ns"), name=PodName("pod"), uid=PodUid("u1"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / FINDINGS_FOLDER
    made.mkdir(parents=True)
    return made


def write(folder: Path, name: str, *found: Problem, pod: PodRef | None = POD) -> None:
    """Write as the broker does: complete, and atomically."""
    text = encode_findings(
        Findings(subject=name, pod=pod, container=ContainerName("main") if pod else None, found=found)
    )
    (folder / f".{name}.new").write_bytes(text)
    (folder / f".{name}.new").rename(folder / f"{name}.json")


def test_a_new_finding_is_told_once_with_whose_it_is(tmp_path: Path, folder: Path) -> None:
    reader = FindingsFolder(tmp_path)
    assert reader.news() == ()
    write(folder, "k1", COVERED)
    (told,) = reader.news()
    assert told.type == "Warning"
    assert told.reason == "CoveredMounts"
    assert told.message == (
        "In container main of pod ns/pod what partage mounted at /run/partage is covered; it is stopped."
    )
    assert reader.news() == ()


def test_a_finding_about_a_card_says_so(tmp_path: Path, folder: Path) -> None:
    write(folder, "GPU-1", Problem("ProcessOfNobody", "a process that is in no granted container uses it"), pod=None)
    (told,) = FindingsFolder(tmp_path).news()
    assert told.message == "A process that is in no granted container uses it."


def test_of_a_file_that_grows_only_what_is_new_is_told(tmp_path: Path, folder: Path) -> None:
    reader = FindingsFolder(tmp_path)
    write(folder, "k1", COVERED)
    reader.news()
    write(folder, "k1", COVERED, LIBRARY)
    assert [told.reason for told in reader.news()] == ["ProcessWithoutLibrary"]


def test_what_went_away_and_comes_again_is_told_again(tmp_path: Path, folder: Path) -> None:
    reader = FindingsFolder(tmp_path)
    for _ in range(2):
        write(folder, "k1", COVERED)
        assert len(reader.news()) == 1
        (folder / "k1.json").unlink()
        assert reader.news() == ()


def test_what_is_none_of_the_brokers_files_harms_nothing(tmp_path: Path, folder: Path) -> None:
    (folder / "bad.json").write_bytes(b"nonsense")
    (folder / "long.json").write_bytes(b" " * (MAX_BYTES + 1))
    (folder / "folder.json").mkdir()
    (folder / ".k2.new").write_bytes(b"half")
    (folder / "link.json").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.json")
    write(folder, "k1", COVERED)
    reader = FindingsFolder(tmp_path)
    assert [told.reason for told in reader.news()] == ["CoveredMounts"]
    assert reader.news() == ()


def test_a_node_without_a_broker_has_no_findings(tmp_path: Path) -> None:
    assert FindingsFolder(tmp_path).news() == ()


def test_a_message_fits_into_an_event(tmp_path: Path, folder: Path) -> None:
    write(folder, "k1", Problem("CoveredMounts", "x" * 512, stops=True))
    (told,) = FindingsFolder(tmp_path).news()
    assert len(told.message) < 1024
