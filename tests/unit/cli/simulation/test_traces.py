"""Traces: the meaning of a line, and the message for a meaningless one."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_cli.simulation import Workload
from partage_cli.simulation.traces import NODE_COLUMNS, POD_COLUMNS, read_trace
from partage_plugins import DecodeError
from partage_plugins.api import GPU, Resources

NODES = "sn,cpu_milli,memory_mib,gpu,model\na,64000,1024,2,T4\nb,8000,512,0,\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np,1000,16,1,460,T4|P100\nq,1,2,0,0,\nr,1,1,8,1000,\n"


def read(folder: Path, nodes: str = NODES, pods: str = PODS) -> Workload:
    (folder / "nodes.csv").write_text(nodes, encoding="utf-8")
    (folder / "pods.csv").write_text(pods, encoding="utf-8")
    return read_trace(folder / "nodes.csv", folder / "pods.csv")


def test_a_node_has_its_cards_and_its_room(tmp_path: Path) -> None:
    first, second = read(tmp_path).nodes
    assert [card.model for card in first.cards] == ["T4", "T4"]
    assert first.total == Resources(cpu_milli=64000, memory_bytes=1 << 30)
    assert second.cards == ()


def test_a_pod_asks_for_its_share_of_cards_of_its_models(tmp_path: Path) -> None:
    shared, without, whole = read(tmp_path).requests
    (ask,) = shared.of(GPU).values()
    assert (ask.count, ask.share_milli, ask.models) == (1, 460, ("T4", "P100"))
    assert (without.of(GPU), without.needs) == ({}, Resources(cpu_milli=1, memory_bytes=2 << 20))
    (ask,) = whole.of(GPU).values()
    assert (ask.count, ask.share_milli, ask.models) == (8, 1000, ())


def test_pods_without_a_column_of_models_take_any(tmp_path: Path) -> None:
    pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,1000\n"
    (request,) = read(tmp_path, pods=pods).requests
    assert next(iter(request.of(GPU).values())).models == ()


@pytest.mark.parametrize(
    ("pods", "where", "what"),
    [
        (PODS.replace("1000,16", "x,16"), "line 2, column cpu_milli is 'x'", "a whole number from 0 to"),
        (PODS.replace("1000,16", "-1,16"), "line 2, column cpu_milli is '-1'", "a whole number"),
        (PODS.replace("1000,16", "1.5,16"), "line 2, column cpu_milli is '1.5'", "a whole number"),
        (PODS.replace("1000,16", "٣,16"), "line 2, column cpu_milli is '٣'", "a whole number"),
        (PODS.replace("1000,16", f"{9**99},16"), "line 2, column cpu_milli", "a whole number"),
        (PODS.replace("1,460", "1,1001"), "line 2, column gpu_milli is '1001'", "from 1 to 1000"),
        (PODS.replace("8,1000", "8,500"), "line 4, column gpu_milli is '500'", "1000 where num_gpu is more than 1"),
        (PODS.replace("8,1000", "800,1000"), "line 4, column num_gpu is '800'", "from 0 to 64"),
        (PODS.replace("q,1,2,0,0,", "q,1"), "line 3, column num_gpu is ''", "a whole number"),
        (PODS.replace("num_gpu", "gpus"), "line 1 is without column num_gpu", ", ".join(POD_COLUMNS)),
        (PODS.splitlines()[0], "line 2 is missing", "a line for each node or pod"),
        ("", "line 1 is without column", "name"),
        (f"{PODS}{'x' * 200_000},1,1,0,0,\n", "field larger than field limit", "CSV in UTF-8"),
    ],
)
def test_a_wrong_line_is_told_by_file_line_and_column(tmp_path: Path, pods: str, where: str, what: str) -> None:
    with pytest.raises(DecodeError) as refusal:
        read(tmp_path, pods=pods)
    said = str(refusal.value)
    assert said.startswith(f"{tmp_path / 'pods.csv'}: ")
    assert where in said
    assert what in said.partition("; allowed: ")[2]
    assert "\n" not in said


@pytest.mark.parametrize(
    ("nodes", "where"),
    [
        (NODES.replace("b,8000", "a,8000"), "line 3, column sn is 'a'; allowed: each node once"),
        (NODES.replace("2,T4", "2,"), "line 2, column model is ''"),
        (NODES.replace("a,64000", ",64000"), "line 2, column sn is ''"),
        (NODES.replace("model", "kind"), f"line 1 is without column model; allowed: {', '.join(NODE_COLUMNS)}"),
    ],
)
def test_a_wrong_node_is_told_in_the_same_way(tmp_path: Path, nodes: str, where: str) -> None:
    with pytest.raises(DecodeError) as refusal:
        read(tmp_path, nodes=nodes)
    assert where in str(refusal.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    read(tmp_path)
    (tmp_path / "pods.csv").write_bytes(PODS.encode() + b"\xff\xfe")
    with pytest.raises(DecodeError, match="CSV in UTF-8"):
        read_trace(tmp_path / "nodes.csv", tmp_path / "pods.csv")


@given(lines=st.lists(st.text(st.sampled_from('0189,|."\n-xé\x00'), max_size=30), max_size=4))
def test_any_lines_are_a_workload_or_one_refusal(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    folder = tmp_path_factory.mktemp("trace")
    with contextlib.suppress(DecodeError):
        assert len(read(folder, pods=PODS + "\n".join(lines)).requests) >= 3
