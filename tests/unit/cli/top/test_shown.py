"""A node's limits, as shown to people and programs on any terminal."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from partage_cli.tables import amount, as_json
from partage_cli.top.shown import Frame, as_lines, fields
from partage_isolation.wire.messages import BrokerReport, CardReport, MigrationReport, ProcessReport
from partage_plugins.api import CardId
from partage_plugins.api.names import BudgetName
from support.broker import CARD, GIB, container, held, pod, time_told, told

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WIDE = Frame(node="n1", at=AT)
TWO = told(
    container(pod("train-0"), held()),
    container(pod("serve", "team-b"), held(limit_bytes=4 * GIB, charged_bytes=4 * GIB, refused=17), pids=(1, 2)),
)


def frame(width: int, height: int = 0) -> Frame:
    return Frame(node="n1", at=AT, width=width, height=height)


def plain(how: BrokerReport, where: Frame = WIDE, trouble: str = "") -> list[str]:
    return [click.unstyle(line) for line in as_lines(how, where, trouble=trouble)]


def test_the_whole_screen() -> None:
    card, first, second = ("█" * full + "░" * (20 - full) for full in (3, 13, 20))
    narrow = "OVERHEAD   REFUSED   PROCESSES"
    assert plain(TWO) == [
        "n1   1 card in use, 2 containers   broker 0.1.0, holds memory   03:04:05",
        "",
        "CARD             MODEL                                          USED    OF       CONTAINERS",
        f"0 GPU-5a1e3c8e   NVIDIA H100 80GB HBM3   {card}   9 GiB   80 GiB   2",
        "",
        f"POD              CONTAINER   CARD                          MEMORY   LIMIT              {narrow}",
        f"team-a/train-0   main        0      {first}   5 GiB    8 GiB              512 MiB    0         1",
        f"team-b/serve     main        0      {second}   4 GiB    4 GiB (of 8 GiB)   512 MiB    17        2",
    ]


def test_a_node_without_limits_says_so() -> None:
    assert plain(BrokerReport(broker="0.1.0"))[-1] == "no container has limits here"


@pytest.mark.parametrize("width", [100, 80, 60, 40, 20, 5, 1])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    lines = plain(replace(TWO, findings=("x" * 200,)), frame(width), "no broker answers " * 9)
    assert max(map(len, lines)) <= width


def test_on_a_narrow_terminal_pod_memory_and_limit_stay_longest() -> None:
    header = plain(TWO, frame(62))[-3]
    assert header.split() == ["POD", "CONTAINER", "CARD", "MEMORY", "LIMIT"]
    assert plain(TWO, frame(44))[-3].split() == ["POD", "MEMORY", "LIMIT"]


@given(st.integers(1, 130), st.integers(4, 30), st.integers(0, 40))
def test_any_number_of_containers_fits_any_window(width: int, height: int, count: int) -> None:
    many = told(*(container(pod(f"train-{number}"), held()) for number in range(count)))
    lines = plain(many, frame(width, height))
    assert max(map(len, lines)) <= width
    assert len(lines) <= height


def test_what_does_not_fit_is_counted() -> None:
    many = told(*(container(pod(f"train-{number}"), held()) for number in range(9)))
    assert plain(many, frame(120, 10))[-1] == "and 6 more: a higher window shows them"


def test_containers_keep_their_places() -> None:
    assert plain(replace(TWO, containers=TWO.containers[::-1])) == plain(TWO)


def test_a_budget_is_one_line_with_the_names_of_its_containers() -> None:
    both = (container(pod(), held(), name="a", pids=(1, 2)), container(pod(), held(), name="b", pids=(3,)))
    (line,) = plain(told(*(replace(each, budget=BudgetName("pod")) for each in both)))[6:]
    assert line.startswith("team-a/train-0   pod (a, b)   0")
    assert line.endswith("   3")
    assert len(plain(told(*both))[6:]) == 2


def test_a_lowered_limit_and_refusals_catch_the_eye() -> None:
    lines = "\n".join(as_lines(TWO, WIDE))
    assert click.style("4 GiB (of 8 GiB)", fg="yellow") in lines
    assert click.style("17", fg="yellow") in lines
    assert click.style("█" * 20, fg="red") in lines


def test_a_limit_that_the_driver_holds_too_is_marked() -> None:
    by_driver = replace(held(), driver_limit_bytes=8 * GIB)
    assert "8 GiB +driver" in plain(told(container(pod(), by_driver)))[-1]
    behind = replace(held(limit_bytes=4 * GIB), driver_limit_bytes=8 * GIB)
    assert "driver" not in plain(told(container(pod(), behind)))[-1]


def test_processes_that_are_not_connected_are_told() -> None:
    (first,) = told(container(pod(), held(), pids=(1, 2, 3))).containers
    away = replace(first, processes=(replace(first.processes[0], connected=False), *first.processes[1:]))
    assert plain(told(away))[-1].endswith("3 (1 away)")


def test_a_process_that_has_not_touched_the_card_is_not_counted() -> None:
    (first,) = told(container(pod(), held())).containers
    idle = ProcessReport(pid=9, connected=True)
    assert plain(told(replace(first, processes=(*first.processes, idle))))[-1].endswith("   1")


def test_what_the_driver_does_not_tell_is_a_hyphen() -> None:
    unknown = replace(TWO, cards=(CardReport(card=CARD),))
    assert plain(unknown)[3].split() == ["GPU-5a1e3c8e", "-", "-", "-", "2"]
    assert plain(unknown)[-1].split()[2] == "GPU-5a1e3c8e"


def test_findings_and_trouble_stand_before_the_table() -> None:
    lines = plain(replace(TWO, findings=("team-a/x: the library is not loaded",)), trouble="no broker answers")
    assert lines[1] == "no broker answers"
    assert lines.index("! team-a/x: the library is not loaded") < lines.index(lines[-3])


def test_a_hostile_name_moves_no_cursor() -> None:
    hostile = told(container(pod("x\x1b[2J"), held()), findings=("a\nb",))
    assert not any("\x1b[2J" in line or "\n" in line for line in as_lines(hostile, WIDE))


def test_a_terminal_without_blocks_gets_plain_bars() -> None:
    line = plain(TWO, Frame(node="n1", at=AT, blocks=False))[-2]
    assert "#" * 13 + "." * 7 in line


@pytest.mark.parametrize(("held_bytes", "drawn"), [(0, 0), (1, 1), (4 * GIB, 10), (8 * GIB, 20), (9 * GIB, 20)])
def test_a_bar_is_as_full_as_the_limit(held_bytes: int, drawn: int) -> None:
    assert plain(told(container(pod(), held(charged_bytes=held_bytes))))[-1].count("█") == drawn


def test_a_limit_of_nothing_is_full_as_soon_as_anything_is_held() -> None:
    assert plain(told(container(pod(), held(limit_bytes=0, charged_bytes=1))))[-1].count("█") == 20
    assert plain(told(container(pod(), held(limit_bytes=0, charged_bytes=0))))[-1].count("█") == 0


def test_programs_get_all_of_it() -> None:
    only = json.loads(as_json(fields(TWO, WIDE)))
    assert (only["node"], only["at"], only["broker"]) == ("n1", "2026-01-02T03:04:05Z", "0.1.0")
    assert "answer" not in only
    first = only["containers"][0]
    assert first["pod"] == {"namespace": "team-a", "name": "train-0", "uid": "uid-of-team-a-train-0"}
    assert (first["cards"][0]["limit_bytes"], first["cards"][0]["charged_bytes"]) == (8 * GIB, 5 * GIB)
    assert first["processes"][0]["cards"][0]["state"] == "live"


@pytest.mark.parametrize(
    ("size_bytes", "said"),
    [
        (None, "-"),
        (0, "0"),
        (512, "512 B"),
        (1 << 20, "1 MiB"),
        (GIB + GIB // 2, "1.5 GiB"),
        (80 * GIB, "80 GiB"),
        (85017493504, "79.2 GiB"),
        (150 * GIB + 1, "150 GiB"),
        (2 << 40, "2 TiB"),
    ],
)
def test_amounts_for_people(size_bytes: int | None, said: str) -> None:
    assert amount(size_bytes) == said


def test_cards_without_an_index_go_by_their_id() -> None:
    other = CardId("GPU-ffffffff-0000-4000-8000-000000000000")
    assert plain(told(container(pod(), held(other))))[-1].split()[2] == "GPU-ffffffff"


def test_time_is_shown_where_it_is_metered() -> None:
    lowered = replace(held(time=time_told(1, 0.3)), share_milli=300, limit_milli=400)
    how = replace(
        told(container(pod("train-0"), held(time=time_told(0.6, 0.6))), container(pod("train-1"), lowered)),
        enforces=("memory", "share", "limit"),
    )
    lines = plain(how)
    assert "holds memory, share and limit" in lines[0]
    assert lines[-3].endswith("PROCESSES                          GOT    WANTED   SHARE")
    assert lines[-2].endswith(f"1           {'█' * 12}{'░' * 8}   60 %   60 %     50 %")
    assert lines[-1].endswith(f"1           {'█' * 6}{'▒' * 14}   30 %   100 %    30-40 % (of 50 %)")


def test_whoever_gets_less_than_its_share_though_it_wants_it_is_seen() -> None:
    for got, colour in ((0.5, "green"), (0.3, "yellow")):
        lines = as_lines(told(container(pod(), held(time=time_told(1, got)))), WIDE)
        assert click.style("█" * round(got * 20), fg=colour) in lines[-1]


def test_beside_those_that_are_metered_others_have_a_hyphen() -> None:
    other = CardId("GPU-ffffffff-0000-4000-8000-000000000000")
    lines = plain(told(container(pod(), held(time=time_told(1, 1)), held(other))))
    assert lines[-1].split()[-3:] == ["-", "-", "-"]


def test_without_blocks_what_was_wanted_and_not_got_is_told_from_both() -> None:
    line = plain(told(container(pod(), held(time=time_told(0.75, 0.5)))), Frame(node="n1", at=AT, blocks=False))[-1]
    assert "#" * 10 + "+" * 5 + "." * 5 in line


def test_where_memory_moves_the_screen_has_what_of_it_is_where_and_how_long_it_was_on_the_way() -> None:
    moving = MigrationReport(resident_bytes=2 * GIB, moved_bytes=3 * GIB, times=21, seconds=33.04, is_out=True)
    rows = container(pod("a"), replace(held(), moving=moving)), container(pod("b"), held())
    header, first, second = plain(told(*rows))[-3:]
    places = [header.index(name) for name in ("RESIDENT", "MOVED", "MOVING", "PROCESSES")]
    assert [first[here:there].strip() for here, there in pairwise(places)] == ["2 GiB", "3 GiB", "33.0 s, 21 x"]
    assert not second[places[0] : places[-1]].strip()
