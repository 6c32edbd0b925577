"""Our places are looked up where the links of an image lead, and only such links are followed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from partage_isolation.audit.listing import RuntimeContainer
from partage_isolation.audit.mounts import InstalledFiles, Places, TooLong
from partage_isolation.audit.proofs import Expected
from unit.isolation.watching.scenes import ID, KEY
from unit.isolation.watching.test_proofs import CONTAINER, EXPECTED

PID = 7
CONTAINER_OF_IT = RuntimeContainer(ID, KEY, PID, running=True)
ALL = tuple(each.point for each in EXPECTED)
RUN, PRELOAD_FILE = ALL[:2], ALL[2:3]
LINKED = tuple(line.replace(" /run/partage", " /var/run/partage") for line in CONTAINER)
"""The mounts of a runtime where `/run` is a link."""


class Expecting:
    """An `InstalledFiles` that expects the same of every process."""

    def expected(self, _: object) -> tuple[Expected, ...]:
        return EXPECTED


@dataclass
class Stage:
    """A /proc with one process."""

    proc: Path
    places: Places = field(init=False)

    def __post_init__(self) -> None:
        self.places = Places(cast("InstalledFiles", Expecting()), self.proc)
        (self.root / "var").mkdir(parents=True)
        (self.root / "../ns").resolve().mkdir()
        (self.root / "../ns/mnt").symlink_to("mnt:[1]")

    @property
    def root(self) -> Path:
        return self.proc / str(PID) / "root"

    def wrong(self, *lines: str, with_links: bool = True) -> tuple[str, ...] | None:
        (self.root / "../mountinfo").write_text("\n".join(lines))
        self.places.look()
        return self.places.wrong(PID, CONTAINER_OF_IT, with_links=with_links)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_places_as_they_were_made_are_right(stage: Stage) -> None:
    assert stage.wrong(*CONTAINER) == ()
    assert stage.wrong(*CONTAINER, with_links=False) == ()


@pytest.mark.parametrize("target", ["/var/run", "var/run", "/var/run/"])
def test_places_behind_a_link_of_the_image_are_right(stage: Stage, target: str) -> None:
    (stage.root / "run").symlink_to(target)
    assert stage.wrong(*LINKED) == ()
    assert stage.wrong(*LINKED, with_links=False) == RUN


def test_places_elsewhere_without_a_link_are_wrong(stage: Stage) -> None:
    assert stage.wrong(*LINKED) == RUN
    (stage.root / "run").mkdir()
    assert stage.wrong(*LINKED) == RUN


def test_a_link_that_leads_elsewhere_is_wrong(stage: Stage) -> None:
    (stage.root / "run").symlink_to("/elsewhere")
    assert stage.wrong(*LINKED) == RUN
    assert stage.wrong(*CONTAINER) == (), "a mount is never behind a link of its own path"


def test_what_covers_the_place_behind_a_link_is_wrong(stage: Stage) -> None:
    (stage.root / "run").symlink_to("/var/run")
    assert stage.wrong(*LINKED, "600 500 0:70 / /var/run rw - tmpfs none rw") == RUN
    assert stage.wrong(*LINKED, "600 502 0:70 / /var/run/partage/x rw - tmpfs none rw") == RUN[:1]
    assert stage.wrong(*LINKED, "600 503 0:70 / /var/run/partage/lib ro - tmpfs none rw") == RUN[1:]


def test_links_on_what_a_process_has_mounted_are_not_followed(stage: Stage) -> None:
    """A process that covers /run, and puts a link there to where our files are visible too, runs without them."""
    (stage.root / "run").symlink_to("/var/run")
    assert stage.wrong(*LINKED, "600 500 0:70 / /run rw - tmpfs none rw") == RUN


def test_the_preload_file_behind_a_link_is_right(stage: Stage) -> None:
    (stage.root / "etc").mkdir()
    (stage.root / "etc/ld.so.preload").symlink_to("preload.d/all")
    moved = tuple(line.replace(" /etc/ld.so.preload", " /etc/preload.d/all") for line in CONTAINER)
    assert stage.wrong(*moved) == ()
    (stage.root / "etc/ld.so.preload").unlink()
    assert stage.wrong(*moved) == PRELOAD_FILE


def test_more_mounts_than_are_read_are_told_and_not_read(stage: Stage) -> None:
    """A user namespace allows anyone to make a hundred thousand."""
    own = [f"{number} 500 0:70 / /x/{number} rw - tmpfs none rw" for number in range(1000, 100_000)]
    with pytest.raises(TooLong):
        stage.wrong(*CONTAINER, *own)
    (stage.root / "../mountinfo").unlink()
    with pytest.raises(TooLong):
        stage.places.wrong(PID, CONTAINER_OF_IT, with_links=True)  # nor again for another process in the same look
    some = [f"{number} 500 0:70 / /x/{number} rw - tmpfs none rw" for number in range(1000, 1500)]
    assert stage.wrong(*CONTAINER, *some) == ()


def test_of_a_process_that_is_gone_nothing_is_said(stage: Stage) -> None:
    assert stage.places.wrong(PID + 1, CONTAINER_OF_IT, with_links=True) is None
    assert stage.wrong("") is None
