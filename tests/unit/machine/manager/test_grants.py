"""Grants of one machine: counted with pods, kept over any death, and gone where the broker has ended them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from partage_cli.machine.manager.admission import Admission
from partage_cli.machine.manager.errors import Objection
from partage_cli.machine.manager.grant_records import NAMESPACE, GrantRecords
from partage_cli.machine.manager.grants import Grants
from partage_cli.machine.wire.messages import Allow, Revoke
from partage_isolation.wire.client import BrokerAway
from partage_isolation.wire.messages import CardHeld, ContainerTold, Prepare, Prepared, Release, Released, Told
from partage_plugins.errors import PartageError, Refused
from partage_plugins.vocabulary import GPU, GpuPart
from partage_plugins.vocabulary.claims import ClaimRecord, claim_key
from partage_plugins.vocabulary.containers import Mount
from partage_plugins.vocabulary.kinds import Promise
from partage_plugins.vocabulary.names import CardId, ContainerKey
from partage_plugins.vocabulary.places import CDI_FOLDER, CLAIMS_FOLDER
from unit.machine.manager.stage import NODE, inventory, key, placement, pod, registry

AWAY = BrokerAway("no broker answers")


class Broker:
    """Holds claims as the broker does; `used` are those that containers have."""

    def __init__(self) -> None:
        self.claims: dict[ContainerKey, Prepare] = {}
        self.used: set[ContainerKey] = set()
        self.fault: PartageError | None = None
        self.fault_after: PartageError | None = None
        self.is_old = False
        self.enforces: tuple[Promise, ...] = ("memory", "share", "limit")
        self.let = threading.Event()
        self.let.set()

    def prepare(self, question: Prepare) -> Prepared:
        self.let.wait()
        self._fail(self.fault)
        assert question.by_hook
        self.claims[question.key] = question
        self._fail(self.fault_after)
        return Prepared(
            mounts=(Mount(container_path="/run/partage/lib", host_path="/lib"),),
            enforces=self.enforces,
            is_claim=True,
            by_hook=not self.is_old,
        )

    def release(self, question: Release) -> Released:
        self._fail(self.fault)
        if question.kills:
            self.used.discard(question.key)
        if question.key not in self.used:
            self.claims.pop(question.key, None)
        return Released(is_over=question.key not in self.claims)

    def tell(self) -> Told:
        self._fail(self.fault)
        return Told(broker="1", containers=tuple(map(_told, self.claims.values())))

    def end(self) -> None:
        """The last container of each has ended."""
        self.claims.clear()
        self.used.clear()

    @staticmethod
    def _fail(fault: PartageError | None) -> None:
        if fault is not None:
            raise fault


def _told(claim: Prepare) -> ContainerTold:
    cards = tuple(
        CardHeld(
            card=grant.card,
            granted_bytes=grant.memory_bytes,
            limit_bytes=1,
            granted_share_milli=grant.share_milli,
            granted_limit_milli=grant.limit_milli,
        )
        for grant in claim.grants
    )
    return ContainerTold(
        key=claim.key, pod=claim.pod, container=claim.container, gen=claim.gen, cards=cards, is_claim=True
    )


class Cards:
    def __init__(self) -> None:
        self.fault: Exception | None = None

    def part(self) -> GpuPart:
        part = inventory(2).part(GPU)
        assert part is not None
        return part

    def document(self, ids: Sequence[CardId]) -> Any:
        if self.fault is not None:
            raise self.fault
        devices = [{"name": id_, "containerEdits": {}} for id_ in ids]
        return {"cdiVersion": "0.5.0", "kind": "partage.dev/gpu", "devices": devices}


class Manager:
    """One after another over the same root and broker."""

    def __init__(self, root: Path, broker: Broker, *, cards: int = 1) -> None:
        self.root, self.broker, self.cards, self.why = root, broker, Cards(), ""
        self.admission = Admission(placement(cards), NODE, tuple(registry().kinds), key())
        self.records = GrantRecords(NODE, root, self.admission)
        self.grants = Grants(
            self.records,
            root=root,
            admission=self.admission,
            lender=broker,
            cards=self.cards,
            refresh=lambda: self.why,
        )
        self.records.take_over()

    async def allow(self, share: int = 300, **more: Any) -> ClaimRecord:
        return await self.grants.allow(Allow(share=share, **more))

    @property
    def given(self) -> int:
        return sum(room.given_milli for room in self.admission.rooms())

    @property
    def devices(self) -> set[str]:
        """That engines find."""
        files = (self.root / CDI_FOLDER).glob("*.json")
        return {device["name"] for file in files for device in json.loads(file.read_bytes())["devices"]}

    @property
    def is_empty(self) -> bool:
        return (self.given, self.devices, self.records.standing(), self.broker.claims) == (0, set(), (), {})


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def manager(tmp_path: Path, broker: Broker) -> Manager:
    return Manager(tmp_path, broker)


async def refused(question: Callable[[], Any], code: str) -> str:
    with pytest.raises(Objection) as raised:
        await question()
    assert raised.value.code == code, raised.value.why
    return raised.value.why


async def test_it_is_placed_as_a_pod_is_and_limits_come_from_the_broker(manager: Manager, broker: Broker) -> None:
    record = await manager.allow(300, limit=500, memory="4Gi", name="train")
    (asked,) = broker.claims.values()
    (grant,) = asked.grants
    assert (grant.share_milli, grant.limit_milli, grant.memory_bytes) == (300, 500, 4 << 30)
    assert (asked.pod.namespace, asked.pod.name, asked.is_claim) == (NAMESPACE, "train", True)
    assert asked.ends_with_last
    assert manager.given == 300
    assert manager.devices == {record.claim.uid}


async def test_its_file_names_the_hook_that_tells_the_broker_of_each_container(manager: Manager) -> None:
    record = await manager.allow()
    (file,) = (manager.root / CDI_FOLDER).iterdir()
    (device,) = json.loads(file.read_bytes())["devices"]
    (hook,) = device["containerEdits"]["hooks"]
    assert hook["hookName"] == "createRuntime"
    assert hook["args"][-2:] == [str(manager.root), claim_key(record.claim.uid)]
    assert device["containerEdits"]["env"] == ["NVIDIA_VISIBLE_DEVICES=void"]


async def test_one_that_is_kept_does_not_end_with_its_containers(manager: Manager, broker: Broker) -> None:
    await manager.allow(keep=True)
    assert not next(iter(broker.claims.values())).ends_with_last


async def test_two_never_have_more_of_a_card_than_there_is(manager: Manager) -> None:
    await manager.allow(600)
    why = await refused(lambda: manager.allow(500), "no-room")
    assert "a share of 500 milli left; the most that is free on one card is 400 milli" in why
    await manager.allow(400)
    assert manager.given == 1000


async def test_nor_do_a_grant_and_a_pod(manager: Manager) -> None:
    await manager.allow(600)
    request = manager.admission.request(pod(share=500), "uid-of-a-pod")  # type: ignore[arg-type]  # a uid
    with pytest.raises(Objection, match="500 milli"):
        manager.admission.now(request)


async def test_several_at_once_have_one_name_each(manager: Manager) -> None:
    made = await asyncio.gather(*(manager.allow(100, name="web") for _ in range(3)), return_exceptions=True)
    assert sum(isinstance(each, ClaimRecord) for each in made) == 1
    assert manager.given == 100


@pytest.mark.parametrize(
    ("said", "code", "why"),
    [
        ({}, "bad-question", "say --share, --memory or --cards"),
        ({"limit": 500}, "bad-question", "say --share, --memory or --cards"),
        ({"share": 0}, "bad-question", "say --share, --memory or --cards"),
        (
            {"share": 100, "memory": "4Gb"},
            "bad-question",
            "--memory is '4Gb'; allowed: an amount of memory from 0 to 4Ei, such as 8Gi or 512Mi",
        ),
        ({"share": 1500}, "bad-question", "--share is 1500; allowed: a multiple of 1000, or --cards beside it"),
        ({"share": 300, "limit": 200}, "bad-question", "--limit is 200; allowed: from 300 (the share) to 1000"),
        ({"share": 100, "cards": 3}, "bad-question", "--share is 100; allowed: an amount that 3 cards divide evenly"),
        ({"cards": 2}, "no-room", "card"),
    ],
)
async def test_what_can_not_be_is_refused_and_leaves_nothing(
    manager: Manager, said: dict[str, Any], code: str, why: str
) -> None:
    assert why in await refused(lambda: manager.grants.allow(Allow(**said)), code)
    assert manager.is_empty


@pytest.mark.parametrize("fault", [AWAY, Refused("no preload library")])
async def test_where_the_broker_can_not_nothing_is_left_once_it_answers(
    manager: Manager, broker: Broker, fault: PartageError
) -> None:
    broker.fault = fault
    await refused(manager.allow, "not-ready" if fault is AWAY else "refused")
    assert manager.devices == set()
    broker.fault = None
    await manager.grants.tidy()
    assert manager.is_empty


async def test_an_answer_that_was_lost_leaves_nothing(manager: Manager, broker: Broker) -> None:
    broker.fault_after = AWAY
    await refused(manager.allow, "not-ready")
    assert manager.is_empty


async def test_cards_that_can_not_be_attached_leave_nothing(manager: Manager) -> None:
    manager.cards.fault = OSError(28, "No space left on device", "/var/run/cdi")
    assert "No space left on device" in await refused(manager.allow, "refused")
    assert manager.is_empty


async def test_a_broker_of_a_version_without_grants_is_refused(manager: Manager, broker: Broker) -> None:
    broker.is_old = True
    assert "restart partage-broker" in await refused(manager.allow, "refused")
    assert manager.is_empty


async def test_limits_that_nothing_enforces_are_refused(manager: Manager, broker: Broker) -> None:
    broker.enforces = ("memory",)
    assert "enforces no limit and no share" in await refused(lambda: manager.allow(limit=500), "refused")
    assert manager.is_empty


async def test_cards_that_are_not_known_are_not_given(manager: Manager) -> None:
    manager.why = "inventory.json: not there"
    assert "inventory.json" in await refused(manager.allow, "not-ready")
    assert manager.is_empty


async def test_what_the_broker_has_ended_is_over_here(manager: Manager, broker: Broker) -> None:
    await manager.allow()
    await manager.grants.tidy()
    assert manager.given == 300
    broker.end()
    await manager.grants.tidy()
    assert manager.is_empty


async def test_a_broker_that_is_away_has_ended_nothing(manager: Manager, broker: Broker) -> None:
    await manager.allow()
    broker.fault = AWAY
    await manager.grants.tidy()
    assert (manager.given, len(manager.devices)) == (300, 1)


async def test_a_manager_that_starts_again_counts_what_was_given(tmp_path: Path, broker: Broker) -> None:
    before = Manager(tmp_path, broker)
    record = await before.allow(600)
    after = Manager(tmp_path, broker)
    assert (after.given, after.devices) == (600, {record.claim.uid})
    await refused(lambda: after.allow(500), "no-room")


async def test_what_a_killed_manager_had_not_finished_ends(tmp_path: Path, broker: Broker) -> None:
    before = Manager(tmp_path, broker)
    await before.allow()
    for file in (tmp_path / CDI_FOLDER).iterdir():
        file.unlink()  # it comes last
    after = Manager(tmp_path, broker)
    assert after.given == 300
    await after.grants.tidy()
    assert after.is_empty


async def test_a_record_that_was_damaged_is_made_again_of_what_the_broker_has(tmp_path: Path, broker: Broker) -> None:
    before = Manager(tmp_path, broker)
    await before.allow(300, memory="4Gi", name="train")
    broker.used = set(broker.claims)
    (record,) = (tmp_path / CLAIMS_FOLDER).iterdir()
    record.write_bytes(b"{")
    after = Manager(tmp_path, broker)
    await after.grants.tidy()
    (found,) = after.records.standing()
    assert (found.claim.name, found.is_released, after.given, after.devices) == ("train", True, 300, set())
    assert found.grants[0].memory_bytes == 4 << 30


async def test_a_claim_of_kubernetes_is_no_grant(tmp_path: Path, broker: Broker) -> None:
    manager = Manager(tmp_path, broker)
    record = await manager.allow()
    text = (tmp_path / CLAIMS_FOLDER / f"{record.claim.uid}.json").read_text()
    (tmp_path / CLAIMS_FOLDER / f"{record.claim.uid}.json").write_text(text.replace(NAMESPACE, "team-a"))
    assert manager.records.standing() == ()


async def test_one_that_nobody_has_is_revoked_at_once(manager: Manager) -> None:
    await manager.allow(name="web")
    assert await manager.grants.revoke(Revoke(name="web")) is None
    assert manager.is_empty


async def test_one_that_somebody_has_takes_no_others_and_counts_until_it_ends(manager: Manager, broker: Broker) -> None:
    await manager.allow(600, name="web")
    broker.used = set(broker.claims)
    left = await manager.grants.revoke(Revoke(name="web"))
    assert left is not None
    assert (left.is_released, manager.devices, manager.given) == (True, set(), 600)
    await manager.grants.tidy()
    assert manager.given == 600
    broker.used.clear()
    await manager.grants.tidy()
    assert manager.is_empty


async def test_by_force_it_is_over_at_once(manager: Manager, broker: Broker) -> None:
    await manager.allow(name="web")
    broker.used = set(broker.claims)
    assert await manager.grants.revoke(Revoke(name="web", force=True)) is None
    assert manager.is_empty


async def test_one_is_revoked_also_while_the_broker_is_away(manager: Manager, broker: Broker) -> None:
    await manager.allow(name="web")
    broker.fault = AWAY
    why = await refused(lambda: manager.grants.revoke(Revoke(name="web")), "not-ready")
    assert why.startswith("no other container gets web, and it ends as soon as the broker answers")
    assert manager.devices == set()
    broker.fault = None
    await manager.grants.tidy()
    assert manager.is_empty


async def test_one_is_known_by_the_beginning_of_its_uid(manager: Manager) -> None:
    record = await manager.allow(name="web")
    await refused(lambda: manager.grants.revoke(Revoke(name=record.claim.uid[:5])), "unknown-name")
    assert await manager.grants.revoke(Revoke(name=record.claim.uid[:6])) is None


async def test_who_asks_may_go_and_it_is_finished_all_the_same(manager: Manager, broker: Broker) -> None:
    broker.let.clear()
    asking = asyncio.create_task(manager.allow(name="web"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    broker.let.set()
    await manager.grants.close()
    assert [record.claim.name for record in manager.records.standing()] == ["web"]
    assert (manager.given, len(manager.devices)) == (300, 1)
