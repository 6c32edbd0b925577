"""The page "Install", typed line by line in the cluster that `make rig-up` gives.

The story itself checks that no container of users is touched and that nothing is left. Only in `make test-all` is the
next version another one, since it has to be built; otherwise the same one is installed again.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.rig import CHECKOUT, Rig
from support import extent, page
from support.install_story import PARTS, story
from support.page import Reader
from support.releases import Release, newer_checkout, release
from support.story_stage import StoryStage, reader_of
from trial.cluster import Trial, trial

LOGS = CHECKOUT / ".cache/test/rig-logs-page"
BUNDLES = CHECKOUT / ".cache/bundle"
IMAGES = "1. Images"
ARCHIVE = re.compile(r"/partage-(?P<version>\S+)-\w+\.tar$", re.MULTILINE)
PUSH = "tools/bundle push {}/partage"
TO_PLAIN = f"{PUSH} --plain-http"
ON_THE_PAGE = ("registry.example", "198.18.0.1:5000")
"""The address of an operator's registry, and of the registry of a machine's first rig."""
NOT_TYPED = {
    "No cluster at hand": "the test has that cluster made, so that it can look into the nodes; real/cleaning types it"
}
"""Parts of the page whose commands are not typed here, and why."""


@pytest.fixture
def cluster() -> Iterator[Trial]:
    with trial(("gpu-1", "gpu-2"), say=print, keep_logs=LOGS) as made:
        yield made


@pytest.fixture
def rig(cluster: Trial) -> Iterator[Rig]:
    """Registers the rig, whose logs the report of a failure shows."""
    yield cluster.rig
    cluster.rig.cluster.close()


@pytest.fixture
def reader(cluster: Trial, tmp_path: Path) -> Iterator[Reader]:
    """A reader in this checkout, in which only archives and their unpacked contents come to lie."""
    before = set(BUNDLES.glob("partage-*"))
    yield reader_of(cluster, CHECKOUT, home=tmp_path)
    for each in set(BUNDLES.glob("partage-*")) - before:
        each.unlink() if each.is_file() else shutil.rmtree(each)


def test_every_part_of_the_page_that_has_commands_is_typed_or_listed_with_the_reason() -> None:
    assert page.commands().keys() == {IMAGES, *PARTS, *NOT_TYPED}


@pytest.mark.extended("four minutes of a reader's typing; each thing that happens has tests of its own")
@pytest.mark.timeout(1800)
def test_the_page_leads_from_nothing_to_shared_cards_to_the_next_version_and_out_again(
    cluster: Trial, rig: Rig, reader: Reader, tmp_path: Path
) -> None:
    first = bundled(reader, rig.registry.address)
    next_one = release(rig, newer_checkout(tmp_path / "newer"), tmp_path / "next") if extent.is_all() else first
    story(StoryStage(cluster, reader, [first, next_one]), print)


def bundled(reader: Reader, registry: str) -> Release:
    """Result of the page's first part, with the line that it prints for this registry."""
    of_operators, of_rigs = ON_THE_PAGE
    assert TO_PLAIN.format(of_rigs) in page.INSTALL.read_text()
    version = ""
    for command in page.commands()[IMAGES]:
        typed = command.replace(PUSH.format(of_operators), TO_PLAIN.format(registry)).replace("VERSION", version)
        if archive := ARCHIVE.search(reader.types(typed)):
            version = archive["version"]
    return Release(version, BUNDLES / f"partage-{version}/chart")
