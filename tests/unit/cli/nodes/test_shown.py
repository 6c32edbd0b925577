"""The cluster's cards, as shown to people and to programs."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import click
import msgspec
import pytest
from msgspec.structs import replace

from partage_cli.nodes.reports import Heartbeat, NodeReport, Report
from partage_cli.nodes.shown import as_table
from partage_cli.tables import as_json, as_yaml
from partage_plugins.api import CardId
from partage_plugins.api.inventory import Ready
from unit.gpu_node.nodes import CARDS, MIG_CARD

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LOST = replace(CARDS[1], health="lost", lost_because="XID 79: fell off the bus", numa_node=1)


def node(**said: object) -> NodeReport:
    whole = NodeReport(
        node="n1",
        heartbeat=Heartbeat(at=AT, age_s=3.25, stale=False),
        ready=Ready(crishim=True, broker=True),
        driver="580.65.06",
        cuda="13.0",
        cards=(CARDS[0], LOST),
    )
    return replace(whole, **said)


def cells(*nodes: NodeReport, wide: bool = False) -> list[dict[str, str]]:
    header, *lines = click.unstyle(as_table(Report(nodes=nodes), wide=wide)).splitlines()
    names = header.split()
    starts = [header.index(name) for name in names]
    ends = [*starts[1:], None]
    return [
        {name: line[start:end].strip() for name, start, end in zip(names, starts, ends, strict=True)} for line in lines
    ]


def test_a_line_for_each_card() -> None:
    first, second = cells(node())
    assert first == {
        "NODE": "n1",
        "CARD": "0 GPU-5a1e3c8e",
        "MODEL": "NVIDIA H100 80GB HBM3",
        "MEMORY": "80 GiB",
        "HEALTH": "ok",
        "POOL": "shared",
        "READY": "crishim+broker",
        "DRIVER": "580.65.06",
        "HEARTBEAT": "3s",
        "WHY": "-",
    }
    assert (second["HEALTH"], second["WHY"]) == ("lost", "XID 79: fell off the bus")


def test_why_a_node_is_not_in_force_stands_at_each_of_its_cards() -> None:
    why = "kubelet does not speak through crishim"
    first, second = cells(node(ready=Ready(broker=True), why=why))
    assert (first["READY"], first["WHY"], second["WHY"]) == ("broker", why, f"{why}; XID 79: fell off the bus")
    assert cells(node(cards=(), why=why))[0]["WHY"] == why


def test_wide_has_the_whole_id_and_the_reason() -> None:
    first, second = cells(node(), wide=True)
    assert (first["ID"], first["WHY"], first["NUMA"]) == (CARDS[0].id, "-", "-")
    assert (second["WHY"], second["NUMA"]) == ("XID 79: fell off the bus", "1")
    resting = replace(CARDS[0], health="degraded: paused: driver 580")
    (only,) = cells(node(cards=(resting,)), wide=True)
    assert (only["HEALTH"], only["WHY"]) == ("degraded", "paused: driver 580")


def test_an_instance_has_its_profile() -> None:
    (only,) = cells(node(cards=(MIG_CARD,)), wide=True)
    assert (only["CARD"], only["MIG"]) == ("- MIG-41f7d2c0", "1g.10gb")


def test_a_node_without_cards_has_a_line_of_its_own() -> None:
    (only,) = cells(node(cards=(), driver=None, cuda=None), wide=True)
    assert (only["NODE"], only["CARD"], only["DRIVER"]) == ("n1", "none", "-")


@pytest.mark.parametrize(
    ("ready", "word"), [(Ready(), "no"), (Ready(crishim=True), "crishim"), (Ready(broker=True), "broker")]
)
def test_what_is_in_force_is_named(ready: Ready, word: str) -> None:
    assert cells(node(ready=ready))[0]["READY"] == word


def test_an_old_heartbeat_and_none_stand_out() -> None:
    old = Heartbeat(at=AT, age_s=301, stale=True)
    assert [each["HEARTBEAT"] for each in cells(node(heartbeat=old, cards=CARDS[:1]))] == ["stale: 5m"]
    assert [each["HEARTBEAT"] for each in cells(node(heartbeat=None, cards=CARDS[:1]))] == ["none"]


def test_small_amounts_are_not_rounded_to_nothing() -> None:
    small = replace(CARDS[0], memory_bytes=1536 << 20)
    assert cells(node(cards=(small,)))[0]["MEMORY"] == "1536 MiB"


def test_colours_say_how_a_card_is_and_move_no_column() -> None:
    text = as_table(Report(nodes=(node(),)), wide=False)
    assert click.style("lost", fg="red") in text
    assert click.style("ok", fg="green") in text
    columns = {line.index("shared") for line in click.unstyle(text).splitlines()[1:]}
    assert len(columns) == 1


def test_text_of_others_moves_no_cursor() -> None:
    evil = replace(CARDS[0], health="degraded: \x9b2J\u202ex", id=CardId("GPU-1"))
    text = click.unstyle(as_table(Report(nodes=(node(cards=(evil,), driver="\x9b1A"),)), wide=True))
    assert text.replace("\n", "").isprintable()


def test_json_has_the_shape_that_the_documents_promise() -> None:
    report = Report(nodes=(node(),), without_inventory=("cpu-1",), faults={"n9": "inventory: $ is null"})
    told = json.loads(as_json(report))
    assert told["without_inventory"] == ["cpu-1"]
    assert told["faults"] == {"n9": "inventory: $ is null"}
    (only,) = told["nodes"]
    assert only["heartbeat"] == {"at": "2026-01-02T03:04:05Z", "age_s": 3.25, "stale": False}
    assert (only["ready"], only["why"]) == ({"crishim": True, "broker": True, "why": ""}, "")
    assert (only["node"], only["driver"], only["cuda"]) == ("n1", "580.65.06", "13.0")
    assert only["cards"][1] == {
        "id": LOST.id,
        "index": 1,
        "model": "NVIDIA H100 80GB HBM3",
        "memory": 80 << 30,
        "cc": "9.0",
        "pci": "0000:19:00.0",
        "numa": 1,
        "switch": None,
        "pcie": None,
        "beyond": 0,
        "health": "lost",
        "why": "XID 79: fell off the bus",
        "cause": None,
        "pool": "shared",
        "mig": None,
        "parent": None,
        "reservation": None,
    }


def test_yaml_says_the_same() -> None:
    report = Report(nodes=(node(),), without_inventory=("cpu-1",))
    assert msgspec.yaml.decode(as_yaml(report)) == json.loads(as_json(report))
