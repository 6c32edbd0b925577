"""Claims are prepared once, from one source, and end when unused; plugins and the API are scripted by the test."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from partage_base.claim_records import ClaimRecords
from partage_base.inventory_file import InventoryFile
from partage_dra.claims import Claim
from partage_dra.holdings import Holdings
from partage_dra.preparer import Preparer
from partage_dra.spec_file import SpecFiles
from partage_plugins.api import GPU, Adjustment, Inventory, Mount, Namespace, NodeName
from partage_plugins.api.claim_devices import device_name
from partage_plugins.api.claims import ClaimRef, ClaimUid, claim_device, claim_key
from partage_plugins.api.places import CDI_FOLDER, CLAIMS_FOLDER, INVENTORY_FILE
from partage_plugins.codecs import encode_inventory
from partage_plugins.errors import PartageError, PluginHung, Refused
from partage_plugins.framework.node import Adjusted
from rig.client.wait import patient
from support.claim_objects import result
from support.fake_host import FakeHost
from unit.dra.making import ASKED, A, card, claim, part

OTHER = ClaimRef(Namespace("team-b"), "other", ClaimUid("77aa"))
CARD_DEVICE = device_name(A)
OF_CARD = f"partage.dev/gpu={A}"
PRELOAD = Mount(container_path="/etc/ld.so.preload", host_path="/run/preload")
ADJUSTED = Adjusted(adjustment=Adjustment(mounts=(PRELOAD,), cdi=(OF_CARD,)))


class Node:
    """The plugins of a node and its API server."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / INVENTORY_FILE).parent.mkdir(parents=True)
        (root / INVENTORY_FILE).write_bytes(encode_inventory(Inventory(kinds={GPU.name: part(card())})))
        self.claims = {ASKED.uid: claim(result(CARD_DEVICE)), OTHER.uid: claim(result(CARD_DEVICE), uid=OTHER.uid)}
        self.away: PartageError | None = None
        self.host = FakeHost(ADJUSTED)
        self.asked = 0
        self.preparing = self.begun()

    def begun(self) -> Preparer:
        return Preparer(
            NodeName("n1"),
            holdings=Holdings(ClaimRecords(self.root)),
            specs=SpecFiles(self.root),
            inventory=InventoryFile(self.root),
            host=self.host,
            claim=self.claim,
        )

    async def claim(self, ref: ClaimRef) -> Claim:
        self.asked += 1
        await asyncio.sleep(0)
        if self.away is not None:
            raise self.away
        return self.claims[ref.uid]

    def spoil(self, ref: ClaimRef, content: bytes = b"{") -> None:
        """Make the claim's record unreadable."""
        (self.root / CLAIMS_FOLDER / f"{ref.uid}.json").write_bytes(content)

    @property
    def files(self) -> tuple[int, int]:
        """The numbers of records and of CDI files."""
        folders = (self.root / CLAIMS_FOLDER, self.root / CDI_FOLDER)
        return cast("tuple[int, int]", tuple(len(list(folder.glob("*.json"))) for folder in folders))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


async def test_a_claim_is_put_in_force_and_then_on_record(node: Node) -> None:
    record = await node.preparing.prepare(ASKED)
    assert record.cdi == (claim_device(ASKED.uid), OF_CARD)
    assert [(each.device, each.card) for each in record.devices] == [(CARD_DEVICE, A)]
    ((container, granted),) = node.host.asked
    assert (container.key, container.is_claim) == (claim_key(ASKED.uid), True)
    assert str(container.pod.uid) == ASKED.uid
    assert granted.grants[GPU.name] == record.grants
    assert node.files == (1, 1)


async def test_asked_again_it_answers_the_same_without_asking_anybody(node: Node) -> None:
    record = await node.preparing.prepare(ASKED)
    node.away, node.host.answer = PartageError("away"), PartageError("away")
    assert await node.begun().prepare(ASKED) == record
    assert node.asked == 1


async def test_asked_twice_at_once_it_is_one_truth(node: Node) -> None:
    one, other = await asyncio.gather(node.preparing.prepare(ASKED), node.preparing.prepare(ASKED))
    assert one == other
    assert node.files == (1, 1)


async def test_a_file_that_somebody_removed_is_made_again(node: Node) -> None:
    record = await node.preparing.prepare(ASKED)
    for path in (node.root / CDI_FOLDER).iterdir():
        path.unlink()
    assert await node.preparing.prepare(ASKED) == record
    assert node.files == (1, 1)


@pytest.mark.parametrize("content", [b"", b"{}"])
async def test_a_record_that_cannot_be_read_is_made_again(node: Node, content: bytes) -> None:
    record = await node.preparing.prepare(ASKED)
    node.spoil(ASKED, content)
    assert await node.preparing.prepare(ASKED) == record
    assert ClaimRecords(node.root).of(ASKED.uid) == record


async def test_while_a_record_cannot_be_read_nothing_else_is_given(node: Node) -> None:
    """What it holds is unknown; its containers run on with their CDI file."""
    await node.preparing.prepare(ASKED)
    node.spoil(ASKED)
    node.begun().take_over()
    assert node.files == (1, 1)
    with pytest.raises(Refused, match="Delete the pods that have that claim"):
        await node.preparing.prepare(OTHER)
    await node.preparing.release(ASKED)
    await node.preparing.prepare(OTHER)


async def test_let_go_of_with_a_record_that_cannot_be_read_kubelet_asks_again(node: Node) -> None:
    await node.preparing.prepare(ASKED)
    node.spoil(ASKED)
    node.host.in_use = {claim_key(ASKED.uid)}
    with pytest.raises(Refused, match="a container has it"):
        await node.preparing.release(ASKED)
    await node.preparing.tidy()
    assert node.files == (1, 1)
    node.host.in_use.clear()
    await node.preparing.release(ASKED)
    assert node.files == (0, 0)


async def test_a_plugin_that_is_slow_with_one_claim_holds_up_no_other(node: Node) -> None:
    async with patient("all are prepared"), asyncio.TaskGroup() as group:
        go = node.host.hold(ASKED.uid)
        slow = group.create_task(node.preparing.prepare(ASKED))
        await node.preparing.prepare(OTHER)
        assert not slow.done()
        go.set()
    assert node.files == (2, 2)


async def test_what_is_being_put_in_force_counts(node: Node) -> None:
    node.claims[ASKED.uid] = claim(result(CARD_DEVICE, "700"))
    node.claims[OTHER.uid] = claim(result(CARD_DEVICE, "700"), uid=OTHER.uid)
    answers = await asyncio.gather(node.preparing.prepare(ASKED), node.preparing.prepare(OTHER), return_exceptions=True)
    assert [type(each) for each in answers].count(Refused) == 1
    assert node.files == (1, 1)


@pytest.mark.parametrize("fault", [Refused("no broker"), PluginHung("isolation", "adjust", "took too long")])
async def test_what_could_not_be_put_in_force_leaves_nothing(node: Node, fault: PartageError) -> None:
    node.host.answer = fault
    with pytest.raises(type(fault)):
        await node.preparing.prepare(ASKED)
    assert node.files == (0, 0)


async def test_a_limit_that_nothing_enforces_is_refused(node: Node) -> None:
    node.host.answer = replace(ADJUSTED, unenforced={GPU.name: ("memory",)})
    with pytest.raises(Refused, match="no plugin on this node enforces memory"):
        await node.preparing.prepare(ASKED)
    assert node.files == (0, 0)


async def test_without_an_inventory_it_waits(node: Node) -> None:
    (node.root / INVENTORY_FILE).unlink()
    with pytest.raises(Refused, match="kubelet tries again"):
        await node.preparing.prepare(ASKED)


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [(("700", "8Gi"), ("301", "8Gi"), "1001 milli of 1000"), (("100", "20Gi"), ("100", "5Gi"), "bytes of")],
)
async def test_no_card_is_given_more_than_once(
    node: Node, first: tuple[str, str], second: tuple[str, str], what: str
) -> None:
    node.claims[ASKED.uid] = claim(result(CARD_DEVICE, *first))
    node.claims[OTHER.uid] = claim(result(CARD_DEVICE, *second), uid=OTHER.uid)
    await node.preparing.prepare(ASKED)
    with pytest.raises(Refused, match=what):
        await node.preparing.prepare(OTHER)
    await node.preparing.release(ASKED)
    await node.preparing.prepare(OTHER)


async def test_what_somebody_has_still_counts_after_it_was_let_go_of(node: Node) -> None:
    node.claims[ASKED.uid] = claim(result(CARD_DEVICE, "700"))
    node.claims[OTHER.uid] = claim(result(CARD_DEVICE, "700"), uid=OTHER.uid)
    await node.preparing.prepare(ASKED)
    node.host.in_use = {claim_key(ASKED.uid)}
    await node.preparing.release(ASKED)
    assert node.files == (1, 1)
    with pytest.raises(Refused, match="kubelet tries again"):
        await node.preparing.prepare(OTHER)
    node.host.in_use.clear()
    await node.begun().tidy()
    assert node.files == (0, 0)


async def test_let_go_of_while_it_is_used_and_prepared_again_it_stays(node: Node) -> None:
    record = await node.preparing.prepare(ASKED)
    node.host.in_use = {claim_key(ASKED.uid)}
    await node.preparing.release(ASKED)
    assert await node.preparing.prepare(ASKED) == record
    node.host.in_use.clear()
    await node.preparing.tidy()
    assert node.files == (1, 1)


async def test_allocated_anew_it_waits_for_those_that_have_it_as_it_was(node: Node) -> None:
    await node.preparing.prepare(ASKED)
    node.host.in_use = {claim_key(ASKED.uid)}
    await node.preparing.release(ASKED)
    node.claims[ASKED.uid] = claim(result(CARD_DEVICE, "500"))
    with pytest.raises(Refused, match="as it was allocated before"):
        await node.preparing.prepare(ASKED)


async def test_what_was_never_prepared_is_let_go_of_all_the_same(node: Node) -> None:
    await node.preparing.release(ASKED)
    assert node.host.told == [claim_key(ASKED.uid)]


async def test_who_only_looks_on_has_the_card_and_no_limits(node: Node) -> None:
    node.claims[ASKED.uid] = claim(result(CARD_DEVICE, adminAccess=True))
    record = await node.preparing.prepare(ASKED)
    assert record.grants == ()
    ((_, granted),) = node.host.asked
    assert not any(GPU.promises(grant, part(card())) for grant in granted.of(GPU))
    node.claims[OTHER.uid] = claim(result(CARD_DEVICE, "1000", "24Gi"), uid=OTHER.uid)
    await node.preparing.prepare(OTHER)


async def test_shares_and_administrators_are_two_claims(node: Node) -> None:
    both = (result(CARD_DEVICE, request="a"), result(CARD_DEVICE, request="b", adminAccess=True))
    node.claims[ASKED.uid] = claim(*both)
    with pytest.raises(Refused, match="two claims"):
        await node.preparing.prepare(ASKED)


async def test_a_new_driver_removes_files_of_claims_without_a_record(node: Node) -> None:
    await node.preparing.prepare(ASKED)
    (node.root / CDI_FOLDER / "partage.dev-share_gone.json").write_text("{}")
    node.begun().take_over()
    assert node.files == (1, 1)


async def test_a_claim_that_cannot_be_ended_yet_keeps_no_other_from_its_end(node: Node) -> None:
    await node.preparing.prepare(ASKED)
    node.host.in_use = {claim_key(ASKED.uid)}
    await node.preparing.release(ASKED)
    node.host.in_use.clear()
    (node.root / CLAIMS_FOLDER / "0000.json").mkdir()  # sorts before the other one
    await node.preparing.tidy()
    assert not (node.root / CLAIMS_FOLDER / f"{ASKED.uid}.json").exists()
