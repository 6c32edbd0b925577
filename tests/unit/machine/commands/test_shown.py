"""Pods for people: rows, docker's words for times, and text of others that moves no cursor."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from partage_cli.machine.commands.progress import words
from partage_cli.machine.commands.shown import duration, event_line, images_table, pods_table, status
from partage_cli.machine.pods.pod import ContainerPort
from partage_cli.machine.wire.messages import ContainerStatus, Event, Grant, Image, PodStatus, Progress
from support.scripted_manager import NOW_NS, pod

S = 10**9


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.4, "Less than a second"),
        (1.9, "1 second"),
        (59, "59 seconds"),
        (60, "About a minute"),
        (120, "2 minutes"),
        (3599, "59 minutes"),
        (3600, "About an hour"),
        (7200, "2 hours"),
        (47 * 3600, "47 hours"),
        (48 * 3600, "2 days"),
        (14 * 86400, "2 weeks"),
        (60 * 86400, "2 months"),
        (800 * 86400, "2 years"),
    ],
)
def test_durations_are_dockers(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def ended(phase: str, code: int, **more: object) -> PodStatus:
    container = ContainerStatus(
        name="main",
        image="busybox",
        state="exited",
        exit_code=code,
        finished_ns=NOW_NS - 7200 * S,
        **more,  # type: ignore[arg-type]
    )
    return pod(phase=phase, containers=(container,), exit_code=None if phase == "restarting" else code)


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (pod(), "Up 3 minutes"),
        (pod(phase="starting", containers=()), "Created"),
        (ended("exited", 1), "Exited (1) 2 hours ago"),
        (ended("exited", 0), "Exited (0) 2 hours ago"),
        (ended("stopped", 143), "Exited (143) 2 hours ago"),
        (ended("restarting", 2), "Restarting (2) 2 hours ago"),
        (ended("exited", 128, why="its share\nis gone"), "Exited (128) 2 hours ago: its share?is gone"),
    ],
)
def test_how_a_pod_is(shown: PodStatus, said: str) -> None:
    assert status(shown, NOW_NS) == said


def test_a_row_says_what_a_pod_has_of_its_cards_in_all() -> None:
    grants = tuple(
        Grant(card=f"GPU-{index}", index=index, share_milli=300, limit_milli=500, memory_bytes=2 << 30, used_bytes=used)
        for index, used in ((0, 1 << 30), (3, None))
    )
    two = replace(pod().containers[0], grants=grants)
    port = ContainerPort(container_port=80, host_port=8080)
    hidden = ContainerPort(container_port=81)
    lines = pods_table([pod(containers=(two,), ports=(port, hidden))], NOW_NS, wide=False).splitlines()
    assert lines[0].split() == ["NAME", "IMAGE", "STATUS", "SHARE", "LIMIT", "MEMORY", "USED", "CARD", "PORTS"]
    assert [cell.strip() for cell in lines[1].split("   ") if cell.strip()] == [
        "train",
        "busybox",
        "Up 3 minutes",
        "60 %",
        "100 %",
        "4 GiB",
        "1 GiB",
        "0,3",
        "0.0.0.0:8080->80/tcp",
    ]


def test_what_containers_have_together_counts_once_in_a_row() -> None:
    shared = Grant(card="GPU-0", index=0, share_milli=600, memory_bytes=4 << 30, used_bytes=1 << 30, budget="pod")
    main = replace(pod().containers[0], grants=(shared,))
    alone = replace(main, name="alone", grants=(replace(shared, share_milli=100, budget=None),))
    containers = main, replace(main, name="side"), alone
    row = pods_table([pod(containers=containers)], NOW_NS, wide=False).splitlines()[1]
    assert [cell.strip() for cell in row.split("   ") if cell.strip()][3:8] == ["70 %", "200 %", "8 GiB", "2 GiB", "0"]


def test_a_pod_without_a_card_has_none_of_its_amounts() -> None:
    plain = replace(pod().containers[0], grants=())
    assert pods_table([pod(containers=(plain,))], NOW_NS, wide=False).splitlines()[1].split()[-6:] == ["-"] * 6


def test_the_wide_table_adds_columns_and_keeps_the_others() -> None:
    plain, wide = (pods_table([pod()], NOW_NS, wide=wide).splitlines()[0].split() for wide in (False, True))
    assert wide[: len(plain)] == plain
    assert wide[len(plain) :] == ["GOT", "ADDRESS", "RESTARTS", "CREATED", "NAMESPACE", "UID"]


def test_images_have_a_row_for_each_name() -> None:
    image = Image(id="sha256:0123456789abcdef", names=("a:1", "b:2"), bytes=5 << 20)
    rows = [line.split() for line in images_table([image]).splitlines()]
    assert rows[1:] == [["a:1", "0123456789ab", "5", "MiB"], ["b:2", "0123456789ab", "5", "MiB"]]


def test_an_event_is_one_line_whatever_it_says() -> None:
    event = Event(at_ns=0, kind="die", name="train", exit_code=1, text="out\nof memory", attributes={"card": "0"})
    assert event_line(event, "T") == "T die train: exit code 1; out?of memory; card=0"
    assert event_line(Event(at_ns=0, kind="card"), "T") == "T card"


def test_progress_says_how_much_of_how_much() -> None:
    assert words(Progress(step="pull", text="app:1", done_bytes=1 << 20, total_bytes=4 << 20)) == (
        "pulling app:1: 1 MiB of 4 MiB"
    )
    assert words(Progress(step="queue", text="2 before you")) == "waiting 2 before you"
