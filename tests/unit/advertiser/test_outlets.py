"""The sinks of an inventory, and the effect of one that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_advertiser.condition_changes import ConditionChange
from partage_advertiser.inventory import InventoryFile, InventorySinks, NoInventory
from partage_advertiser.sinks import LogSink
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.codecs import encode_inventory
from unit.advertiser.cards import card, inventory

LOST = inventory(card(health="lost"))


class Full(InventoryFile):
    """An inventory file on a full file system."""

    def write(self, text: bytes) -> bool:
        raise OSError(28, "No space left on device")


class Heard(LogSink):
    """Stands for the API server and the log."""

    def __init__(self) -> None:
        self.wanted: list[str] = []
        self.reasons: list[str] = []

    def want(self, text: str) -> None:
        self.wanted.append(text)

    def tell(self, happening: ConditionChange) -> None:
        self.reasons.append(happening.reason)


def test_an_inventory_reaches_the_file_the_api_server_and_people(tmp_path: Path) -> None:
    heard = Heard()
    InventorySinks(InventoryFile(tmp_path), heard).tell(LOST)
    assert (tmp_path / INVENTORY_FILE).read_bytes() == encode_inventory(LOST)
    assert (heard.wanted, heard.reasons) == ([encode_inventory(LOST).decode()], ["CardLost"])


def test_a_file_without_room_keeps_no_news_from_the_cluster_and_is_told_each_time(tmp_path: Path) -> None:
    heard = Heard()
    sinks = InventorySinks(Full(tmp_path), heard)
    for _ in range(2):
        with pytest.raises(NoInventory, match="No space left on device; free room in /run"):
            sinks.tell(LOST)
    assert heard.wanted == [encode_inventory(LOST).decode()] * 2
    assert heard.reasons == ["CardLost"]


def test_people_hear_only_of_what_the_advertiser_before_did_not_tell(tmp_path: Path) -> None:
    InventoryFile(tmp_path).write(encode_inventory(LOST))
    heard = Heard()
    InventorySinks(InventoryFile(tmp_path), heard).tell(LOST)
    assert not heard.reasons


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'{"v":2,"kinds":{}}'])
def test_a_file_that_says_nothing_is_made_anew(tmp_path: Path, text: bytes) -> None:
    InventoryFile(tmp_path).write(text)
    sinks = InventorySinks(InventoryFile(tmp_path), Heard())
    assert sinks.told is None
    sinks.tell(LOST)
    assert (tmp_path / INVENTORY_FILE).read_bytes() == encode_inventory(LOST)
