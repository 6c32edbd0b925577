"""A key is replaced once every node has its successor, and removed once no pod needs it."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from partage_base.keyring import KeyKept, KeyUnknown
from partage_base.kube import ApiServer, KubeError, Meta
from partage_cli.keys.objects import KEYS, SIGNING
from partage_cli.keys.provision import key_ensured
from partage_cli.keys.rotation import SETTLES_S, Rotated, known_everywhere, next_key, retired, switched
from partage_cli.keys.store import KeyStore
from partage_cli.keys.trust import SignedPod, Standing, needing, standing
from partage_cli.nodes.reports import Heartbeat, NodeReport, Report
from partage_plugins.api.inventory import Ready
from partage_plugins.api.keys import SIGNATURE
from partage_plugins.api.names import KeyId
from support.fake_api import Drop, FakeApi

SYSTEM = "partage-system"
NOW_S = 1_000_000.0
LATER_S = NOW_S + SETTLES_S


@dataclass
class Cluster:
    """The state of nodes and pods, set by a test."""

    lacks: tuple[str, ...] = ()
    pods: list[str] = field(default_factory=list[str])
    asked: list[KeyId] = field(default_factory=list[KeyId])

    async def standing(self, key: KeyId) -> Standing:
        self.asked.append(key)
        return Standing(have=("n9",), lack=self.lacks, silent=())

    async def needing(self, key: KeyId) -> list[str]:
        return self.pods


@pytest.fixture
def store(server: ApiServer) -> KeyStore:
    return KeyStore(server, SYSTEM)


def held(api: FakeApi) -> dict[str, str]:
    data = api.objects.get(f"/api/v1/namespaces/{SYSTEM}/secrets/{SIGNING}")["data"]
    return {name: base64.b64decode(text).decode().strip() for name, text in data.items()}


def public(api: FakeApi) -> set[str]:
    return set(api.objects.get(f"/api/v1/namespaces/{SYSTEM}/configmaps/{KEYS}")["data"])


async def rotated(store: KeyStore) -> Rotated:
    await key_ensured(store)
    found = await next_key(store)
    await switched(store, found, NOW_S)
    return found


async def test_nodes_get_the_next_key_before_it_signs(api: FakeApi, store: KeyStore) -> None:
    old = await key_ensured(store)
    found = await next_key(store)
    assert found.old == old
    assert held(api)["signing"] == old
    assert public(api) == {f"{found.old}.pub", f"{found.new}.pub"}


async def test_a_rotation_that_was_stopped_goes_on_with_the_same_key(api: FakeApi, store: KeyStore) -> None:
    await key_ensured(store)
    api.expect(Drop(after_success=True), method="PATCH")
    with pytest.raises(KubeError):
        await next_key(store)
    found = await next_key(store)
    assert await next_key(store) == found
    await switched(store, found, NOW_S)
    assert held(api) == {"signing": found.new, f"{found.new}.key": held(api)[f"{found.new}.key"]}
    await switched(store, found, NOW_S)
    assert public(api) == {f"{found.old}.pub", f"{found.new}.pub"}


async def test_a_node_that_lacks_the_key_is_waited_for_and_named() -> None:
    cluster, waited = Cluster(lacks=tuple(f"n{each}" for each in range(8))), list[Standing]()

    async def wait(found: Standing) -> bool:
        waited.append(found)
        return len(waited) < 3

    said = r"8 nodes in force do not trust k yet: n0, n1, n2, n3, n4 and 3 more; nothing signs with it"
    with pytest.raises(KeyKept, match=said):
        await known_everywhere(cluster, KeyId("k"), wait=wait)
    assert len(waited) == 3
    cluster.lacks = ()
    assert (await known_everywhere(cluster, KeyId("k"), wait=wait)).have == ("n9",)


async def test_keys_that_changed_meanwhile_are_not_switched(api: FakeApi, store: KeyStore) -> None:
    await rotated(store)
    with pytest.raises(KeyKept, match="were changed meanwhile"):
        await switched(store, Rotated(KeyId("0" * 16), KeyId("1" * 16)), NOW_S)


async def test_an_old_key_is_retired_once_nothing_needs_it(api: FakeApi, store: KeyStore) -> None:
    keys, cluster = await rotated(store), Cluster()
    assert await retired(store, cluster, keys.old, force=False, now_s=LATER_S) == keys.new
    assert cluster.asked == [keys.new]
    assert public(api) == {f"{keys.new}.pub"}


@pytest.mark.parametrize(
    ("cluster", "now_s", "said"),
    [
        (Cluster(lacks=("n1",)), LATER_S, "1 nodes in force do not trust .*: n1"),
        (Cluster(pods=["team/train"]), LATER_S, "1 pods have an allocation that .* signed: team/train"),
        (Cluster(), LATER_S - 10, "a scheduler may not know it yet; wait 10 s"),
    ],
)
async def test_what_still_needs_the_old_key_keeps_it(
    api: FakeApi, store: KeyStore, cluster: Cluster, now_s: float, said: str
) -> None:
    keys = await rotated(store)
    with pytest.raises(KeyKept, match=said):
        await retired(store, cluster, keys.old, force=False, now_s=now_s)
    assert public(api) == {f"{keys.old}.pub", f"{keys.new}.pub"}
    await retired(store, cluster, keys.old, force=True, now_s=now_s)
    assert public(api) == {f"{keys.new}.pub"}


@pytest.mark.parametrize("force", [False, True])
async def test_the_key_that_signs_is_never_retired(store: KeyStore, *, force: bool) -> None:
    keys = await rotated(store)
    with pytest.raises(KeyKept, match="signs; `partage keys rotate`"):
        await retired(store, Cluster(), keys.new, force=force, now_s=LATER_S)
    with pytest.raises(KeyUnknown, match="has no key 0000000000000000"):
        await retired(store, Cluster(), KeyId("0" * 16), force=force, now_s=LATER_S)


async def test_without_a_key_there_is_nothing_to_rotate(store: KeyStore) -> None:
    with pytest.raises(KeyUnknown, match="`partage keys ensure` makes one"):
        await next_key(store)


AT = datetime(2026, 1, 2, tzinfo=UTC)


def node(name: str, *keys: str, crishim: bool = True, stale: bool = False) -> NodeReport:
    beat = Heartbeat(at=AT - timedelta(seconds=stale * 100), age_s=1, stale=stale)
    return NodeReport(node=name, heartbeat=beat, ready=Ready(crishim=crishim), keys=keys)


def test_only_nodes_in_force_are_waited_for_and_those_that_can_not_be_read_are_too() -> None:
    report = Report(
        nodes=(
            node("has", "k", "other"),
            node("lacks", "other"),
            node("says-nothing"),
            node("silent", stale=True),
            node("off", crishim=False),
        ),
        without_inventory=("cpu",),
        faults={"broken": "why"},
    )
    assert standing(report, KeyId("k")) == Standing(
        have=("has",), lack=("lacks", "says-nothing", "broken"), silent=("silent",)
    )


def test_a_pod_needs_the_key_that_its_signature_names() -> None:
    signature = f"{'a' * 16}:{base64.b64encode(bytes(64)).decode()}"
    pods = [
        SignedPod(Meta(namespace="team", name="signed", annotations={SIGNATURE: signature})),
        SignedPod(Meta(namespace="team", name="garbage", annotations={SIGNATURE: "x"})),
        SignedPod(Meta(namespace="team", name="none")),
    ]
    assert needing(pods, KeyId("a" * 16)) == ["team/signed"]
    assert needing(pods, KeyId("b" * 16)) == []
