"""A stranger with a machine and the first page of its documents, who types no command that is not on that page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

import pytest

from partage_cli.machine.places import MACHINE_FILE, STATE
from rig.errors import ComponentFailed
from rig.rig import CHECKOUT
from support.machine_image import workloads
from support.machine_stage import MachineStage, machine_up

pytestmark = pytest.mark.timeout(300)
PAGE: Final = (CHECKOUT / "docs/machine.md").read_text()
_IMAGE: Final = "workloads"
WAITS: Final = "sh -c 'trap exit TERM; sleep 100000 & wait'"
_WORD: Final = re.compile(r"[a-z]+|--?[a-z][a-z-]*")


class Stranger:
    def __init__(self, stage: MachineStage) -> None:
        self._stage = stage

    def types(self, line: str) -> str:
        """What the command prints; IMAGE stands for one that the stranger has, as it does on the page."""
        own = shlex.split(line.partition(" -- ")[0])
        unknown = [word for word in own if _WORD.fullmatch(word) and not re.search(rf"(?<![\w-]){word}(?![\w-])", PAGE)]
        assert not unknown, f"{line}: {unknown} are not on the page"
        return self._stage.partage(*shlex.split(line.replace("IMAGE", _IMAGE)))

    def is_refused(self, line: str) -> str:
        """Why."""
        with pytest.raises(ComponentFailed) as refused:
            self.types(line)
        return str(refused.value)


@pytest.fixture
def stage() -> Iterator[MachineStage]:
    """Of its own, since a stranger takes it down. It is up: the page has no words for which cards are simulated."""
    with machine_up(say=print) as stage:
        stage.registry.push(workloads(), _IMAGE)
        yield stage


def test_a_stranger_shares_a_card_sees_its_use_changes_a_limit_finds_why_one_does_not_start_and_removes_all(
    stage: MachineStage,
) -> None:
    stranger = Stranger(stage)
    stranger.types("run -d --name train --share 500 --memory 8Gi IMAGE -- flood --seconds 100000")
    stranger.types(
        "run -d --name serve --share 300 --limit 600 --memory 4Gi IMAGE -- sh -c 'trap exit TERM; sleep 100000 & wait'"
    )
    header, *rows = (line.split() for line in stranger.types("ps").splitlines())
    assert {"NAME", "SHARE", "LIMIT", "MEMORY", "USED", "CARD"} <= set(header)
    assert sorted(row[0] for row in rows) == ["serve", "train"]
    assert "train" in stranger.types("top")
    stranger.types("limits train --memory 6Gi")
    assert "6 GiB" in stranger.types("top")
    assert "200 milli" in stranger.is_refused("run --name more --share 300 IMAGE -- flood")
    stranger.types("stop serve")
    stranger.types("rm serve")
    stranger.types(f"run -d --name more --share 300 IMAGE -- {WAITS}")
    assert sorted(line.split()[0] for line in stranger.types("ps").splitlines()[1:]) == ["more", "train"]
    stranger.types("down --all --purge")
    assert not stage.machine.path(f"/{STATE}").exists()
    assert not stage.machine.path(f"/{MACHINE_FILE}").exists()
