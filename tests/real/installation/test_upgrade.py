"""Upgrades on a machine with a real systemd while a container runs: no call is lost, no container is touched."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

from partage_base.cri import CriError, UnaryClient
from partage_cli.installation import journal
from partage_cli.installation.places import VERSION_BACK, WENT_BACK
from rig.client.wait import until
from rig.rig import CHECKOUT
from support.crishim import SOCKET
from support.upgrade_stage import ADVERTISER, BROKER, CRISHIM, UPGRADE_PID, UpgradeStage, upgrade_stage

LOGS = CHECKOUT / ".cache/test/rig-logs-upgrade"
OLD, NEW, BROKEN, LAME = "1.0-g1", "1.1-g2", "1.2-g3", "1.3-g4"
_ONLY_LOOKS = 'case " $* " in *" --check "*|*" --install-library "*) ;; *) exit 1 ;; esac'
"""A version whose configuration check succeeds, but which does not start."""


@pytest.fixture(scope="module")
def stage() -> Iterator[UpgradeStage]:
    with upgrade_stage(say=print, keep_logs=LOGS) as stage:
        yield stage


@pytest.fixture(scope="module")
def container(stage: UpgradeStage) -> str:
    return stage.start_container("kept")


@contextmanager
def asking(stage: UpgradeStage) -> Generator[None]:
    """Call continuously as kubelet does, on separate connections; an unanswered call is an error."""
    over, failed = threading.Event(), list[CriError]()

    def ask() -> None:
        while not over.wait(0.1) and not failed:
            try:
                asyncio.run(_answered(stage))
            except CriError as error:
                failed.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert failed == []


async def _answered(stage: UpgradeStage) -> None:
    client = UnaryClient(stage.machine.path(SOCKET))
    try:
        await client.call("/runtime.v1.RuntimeService/Version", b"", deadline_s=90)
    finally:
        client.close()


def versions(stage: UpgradeStage) -> set[str]:
    return {stage.in_force, *map(stage.running_version, (BROKER, CRISHIM, ADVERTISER))}


def test_a_new_version_takes_over_behind_the_socket(stage: UpgradeStage, container: str) -> None:
    before = stage.process_of(container)
    stage.tree(NEW)
    with asking(stage):
        code, said = stage.upgrade(NEW)
    assert code == 0, said
    assert versions(stage) == {NEW}
    assert stage.process_of(container) == before


def test_a_version_that_does_not_start_gives_way_and_no_call_is_lost(stage: UpgradeStage, container: str) -> None:
    before, had = stage.process_of(container), stage.in_force
    stage.tree(BROKEN, partage_crishim=_ONLY_LOOKS)
    with asking(stage):
        code, said = stage.upgrade(BROKEN)
    assert code == 1
    assert f"{had} is in force again" in said, said
    assert versions(stage) == {had}
    assert stage.process_of(container) == before


def test_where_the_upgrade_itself_is_killed_systemd_brings_the_version_before_back(
    stage: UpgradeStage, container: str
) -> None:
    before, had = stage.process_of(container), stage.in_force
    stage.tree(LAME, partage_crishim=f"{_ONLY_LOOKS.replace('exit 1', 'sleep 1; exit 1')}")
    script = stage.machine.path(f"/{VERSION_BACK}")
    with asking(stage):
        work = stage.upgrading(LAME)
        until("crishim starts", lambda: None if "activating" in stage_of(stage) else "not yet", 60)
        stage.machine.run("kill", "-KILL", stage.machine.path(UPGRADE_PID).read_text().strip())
        work.communicate()
        assert script.exists()
        until("the version before is back", lambda: None if not script.exists() else "not yet", 60)
        until("crishim runs", lambda: None if stage_of(stage) == "active" else stage_of(stage), 60)
        until("both are of the version before", lambda: None if versions(stage) == {had} else str(versions(stage)), 60)
    assert "partage-crishim failed" in stage.machine.path(f"/{WENT_BACK}").read_text()
    code, said = stage.upgrade(NEW)
    assert (code, "partage-crishim failed" in said) == (1, True)
    assert journal.read(stage.machine.path("/")).states == {}
    assert stage.process_of(container) == before


def stage_of(stage: UpgradeStage) -> str:
    return stage.systemd.systemctl("show", "--property", "ActiveState", "--value", CRISHIM)
