"""`partage grant` with a real engine: Podman's containers share a card with each other and with pods of the machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest

from partage_isolation.store.folders import PARENT
from partage_plugins.vocabulary.claims import ClaimUid, claim_key
from partage_plugins.vocabulary.places import CDI_FOLDER, CLAIMS_FOLDER
from rig.client.wait import until
from support.engines import podman as engine
from support.engines.podman import podman_on
from support.machine_image import workloads
from support.machine_services import pid_of
from support.machine_stage import PARTAGE, MachineStage, machine_up

pytestmark = pytest.mark.timeout(300)
WAITS: Final = ("tools", "sleep", "100000")
LARGE: Final = ("allocate", "--kind", "large", "--count", "1")
_WITHIN_S: Final = 30.0


@dataclass(frozen=True)
class Podman(engine.Podman):
    """On a machine that `partage up` made."""

    stage: MachineStage

    def partage(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.program(*PARTAGE, *words)


@pytest.fixture(scope="module")
def one() -> Iterator[Podman]:
    with machine_up(1, say=print) as stage:
        podman = Podman(**vars(podman_on(stage.machine)), stage=stage)
        podman.load({"tools": workloads()})
        yield podman


@pytest.fixture
def podman(one: Podman) -> Iterator[Podman]:
    yield one
    one.end_all()
    for each in grants(one):
        one.partage("revoke", "--force", each["name"])
    assert grants(one) == []


def grants(podman: Podman) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(podman.partage("grants", "-o", "json").stdout)["grants"]
    return found


def granted(podman: Podman, *words: str) -> tuple[str, ...]:
    """The flag, as a shell would pass it on."""
    done = podman.partage("grant", *words)
    assert done.returncode == 0, done.stderr
    return tuple(done.stdout.split())


def uid_of(flag: tuple[str, ...]) -> ClaimUid:
    return ClaimUid(flag[1].partition("=")[2])


def left(podman: Podman, flag: tuple[str, ...]) -> list[str]:
    """What there still is of a grant."""
    uid = uid_of(flag)
    places = (
        f"{CDI_FOLDER}/partage.dev-share_{uid}.json",
        f"{CLAIMS_FOLDER}/{uid}.json",
        f"{PARENT}/{claim_key(uid)}",
    )
    return [place for place in places if podman.stage.machine.path(f"/{place}").exists()]


def wait_nothing_left(podman: Podman, flag: tuple[str, ...]) -> None:
    until("nothing is left of the grant", lambda: ", ".join(left(podman, flag)) or None, _WITHIN_S)
    assert grants(podman) == []


@contextmanager
def stopped(stage: MachineStage, service: str) -> Generator[None]:
    """It answers nobody meanwhile."""
    pid = pid_of(stage.up.pid, service)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def killed(stage: MachineStage, service: str) -> None:
    """Returns when there is another one in its place."""
    before = pid_of(stage.up.pid, service)
    os.kill(before, signal.SIGKILL)
    until(
        f"{service} runs again", lambda: None if pid_of(stage.up.pid, service) not in {0, before} else "no", _WITHIN_S
    )


def answers(podman: Podman) -> None:
    """Broker and manager have both said what they know."""
    until("both answer", lambda: None if podman.partage("top", "--once").returncode == 0 else "no broker", _WITHIN_S)
    until("both answer", lambda: None if podman.partage("grants").returncode == 0 else "no manager", _WITHIN_S)


def test_a_container_has_the_share_by_the_flag_alone_and_no_more(podman: Podman) -> None:
    flag = granted(podman, "--name", "train", "--share", "300", "--memory", "4Gi")
    container = podman.run("-d", *flag, *WAITS)
    (found,) = grants(podman)
    assert (found["name"], found["containers"]) == ("train", [container])
    within, beyond = (podman.done("exec", container, *LARGE, "--mib", mib) for mib in ("1024", "4096"))
    assert within.returncode == 0, within.stderr
    assert beyond.returncode != 0
    assert "memory" in beyond.stdout.lower()
    assert "grants/train" in podman.partage("top", "--once").stdout
    assert podman.partage("limits", "train", "--memory", "1Gi").returncode == 0
    assert podman.done("exec", container, *LARGE, "--mib", "1024").returncode != 0


def test_containers_with_one_grant_have_its_memory_together(podman: Podman) -> None:
    flag = granted(podman, "--share", "300", "--memory", "4Gi")
    podman.run("-d", *flag, "tools", *LARGE, "--mib", "2500", "--seconds", "1000", "--count", "1000000000")
    other = podman.run("-d", *flag, *WAITS)
    until("the first has its memory", lambda: None if grants(podman)[0]["grants"][0]["used_bytes"] else "no", _WITHIN_S)
    assert podman.done("exec", other, *LARGE, "--mib", "2500").returncode != 0
    assert podman.done("exec", other, *LARGE, "--mib", "100").returncode == 0


def test_a_grant_ends_with_the_last_of_its_containers(podman: Podman) -> None:
    flag = granted(podman, "--share", "1000")
    first, last = (podman.run("-d", *flag, *WAITS) for _ in range(2))
    podman.end(first)
    until("one is left", lambda: None if grants(podman)[0]["containers"] == [last] else "no", _WITHIN_S)
    assert len(left(podman, flag)) == 3
    podman.end(last)
    wait_nothing_left(podman, flag)
    assert "unresolvable CDI devices" in podman.done("run", "--rm", *flag, "tools", "true").stderr
    granted(podman, "--share", "1000")  # the card is free again


def test_one_that_is_kept_outlives_its_containers_until_it_is_revoked(podman: Podman) -> None:
    flag = granted(podman, "--name", "web", "--share", "100", "--keep")
    for _ in range(2):
        podman.run("--rm", *flag, "tools", "true")
    until("nobody has it", lambda: None if grants(podman)[0]["containers"] == [] else "somebody", _WITHIN_S)
    assert len(left(podman, flag)) == 3
    assert podman.partage("revoke", "web").stdout == "web\n"
    assert left(podman, flag) == []


def test_one_that_is_revoked_stays_with_those_that_have_it_and_takes_no_others(podman: Podman) -> None:
    flag = granted(podman, "--name", "web", "--share", "600")
    container = podman.run("-d", *flag, *WAITS)
    done = podman.partage("revoke", "web")
    assert done.returncode == 0
    assert f"web ends with those that have it: {container[:12]}; --force kills them" in done.stderr
    assert podman.done("run", "--rm", *flag, "tools", "true").returncode != 0
    assert podman.done("exec", container, *LARGE, "--mib", "64").returncode == 0
    assert "600 milli left" in podman.partage("grant", "--share", "600").stderr
    podman.end(container)
    wait_nothing_left(podman, flag)


def test_by_force_its_containers_are_killed_and_nothing_is_left(podman: Podman) -> None:
    flag = granted(podman, "--name", "web", "--share", "600", "--keep")
    podman.run("-d", *flag, *WAITS)
    assert podman.partage("revoke", "--force", "web").returncode == 0
    assert left(podman, flag) == []
    until("the container has ended", lambda: ", ".join(podman.running()) or None, _WITHIN_S)


def test_grants_and_pods_never_overbook_a_card(podman: Podman) -> None:
    granted(podman, "--name", "one", "--share", "600", "--memory", "10Gi")
    refused = podman.partage("grant", "--share", "500")
    assert refused.returncode == 1
    assert "a share of 500 milli left" in refused.stderr
    assert "the most that is free on one card is 400 milli" in refused.stderr
    assert "400 milli" in podman.partage("run", "--share", "500", "tools").stderr
    assert "no card has 75 GiB left" in podman.partage("grant", "--share", "100", "--memory", "75Gi").stderr
    killed(podman.stage, "manager")
    answers(podman)
    assert "400 milli" in podman.partage("grant", "--share", "500").stderr, "a manager that starts again knows it"


def test_a_broker_that_starts_again_knows_who_has_a_grant(podman: Podman) -> None:
    flag = granted(podman, "--share", "300", "--memory", "4Gi")
    container, gone = podman.run("-d", *flag, *WAITS), podman.run("-d", *flag, *WAITS)
    with stopped(podman.stage, "broker"):
        podman.end(gone)
    killed(podman.stage, "broker")
    answers(podman)
    until("it is known", lambda: None if grants(podman)[0]["containers"] == [container] else "no", _WITHIN_S)
    assert podman.done("exec", container, *LARGE, "--mib", "1024").returncode == 0
    assert podman.done("exec", container, *LARGE, "--mib", "4096").returncode != 0
    podman.end(container)
    wait_nothing_left(podman, flag)


def test_while_no_broker_answers_no_container_starts_with_a_grant(podman: Podman) -> None:
    flag = granted(podman, "--share", "300")
    with stopped(podman.stage, "broker"):
        done = podman.done("run", "--rm", *flag, "tools", "true")
        assert done.returncode != 0
        assert "the container does not start: the broker" in done.stderr
        assert podman.done("run", "--rm", "tools", "true").returncode == 0, "others start"
    assert podman.run("--rm", *flag, "tools", "echo", "yes") == "yes"


def test_a_container_without_the_device_gets_nothing_by_anothers_uid(podman: Podman) -> None:
    mine, theirs = (granted(podman, "--share", "300", "--memory", "4Gi", "--keep") for _ in range(2))
    owner = podman.run("-d", *mine, *WAITS)
    uid, spec = uid_of(mine), podman.stage.machine.path(f"/{CDI_FOLDER}/partage.dev-share_{uid_of(mine)}.json")
    (device,) = json.loads(spec.read_bytes())["devices"]
    edits = device["containerEdits"]
    mounts = [word for each in edits["mounts"] for word in ("-v", f"{each['hostPath']}:{each['containerPath']}:ro")]
    nodes = [word for each in edits["deviceNodes"] for word in ("--device", f"{each['hostPath']}:{each['path']}")]
    thief = podman.run("-d", *mounts, *nodes, "-e", f"PARTAGE_CLAIM={uid}", *WAITS)
    for container, gets in ((owner, True), (thief, False)):
        done = podman.done("exec", container, *LARGE, "--mib", "64")
        assert (done.returncode == 0) is gets, (done.stdout, done.stderr)
    volume = f"/{PARENT}/{claim_key(uid)}:/run/partage/claims/{uid}:ro"
    both = podman.run("-d", *theirs, "-v", volume, *WAITS)
    assert podman.done("exec", both, *LARGE, "--mib", "64").returncode != 0
    assert [owner] in [each["containers"] for each in grants(podman)]


def test_what_can_not_be_is_refused_in_one_line(podman: Podman) -> None:
    for words, why in (
        ((), "say --share, --memory or --cards"),
        (("--memory", "4Gb"), "4Gb"),
        (("--share", "1500"), "1500"),
        (("--share", "100", "--name", "No Name"), "name"),
        (("--share", "100", "--engine", "docker"), "docker"),
    ):
        done = podman.partage("grant", *words)
        assert (done.returncode, done.stdout) == (1, ""), words
        line = done.stderr.splitlines()[-1]
        assert line.startswith("partage: "), line
        assert why in line
    granted(podman, "--share", "100", "--name", "web")
    assert "there is a grant web already" in podman.partage("grant", "--share", "100", "--name", "web").stderr
    assert "there is no grant wbe" in podman.partage("revoke", "wbe").stderr


def test_the_end_of_the_machine_is_the_end_of_its_grants(podman: Podman) -> None:
    stage = podman.stage
    flag = granted(podman, "--share", "300", "--keep")
    container = podman.run("-d", *flag, *WAITS)
    stage.up.stop()
    assert podman.done("exec", container, "true").returncode == 0
    refused = podman.partage("down", "--purge")
    assert f"have grants that --purge would take away: {container[:12]}; add --all" in refused.stderr
    assert podman.partage("down", "--all").returncode == 0
    until("the container has ended", lambda: ", ".join(podman.running()) or None, _WITHIN_S)
    stage.start()
    wait_nothing_left(podman, flag)
