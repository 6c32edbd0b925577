"""A container gets what the scheduler signed for its pod on this node, and nothing from any other source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_plugins.api import ContainerName, Kind, PodUid
from partage_plugins.api.keys import ALLOCATION, CONTAINER, SIGNATURE
from partage_plugins.codecs import container_key, key_id
from unit.crishim.rules.allocations import GIB, KEY, allocation, card, grant, inventory, signed
from unit.crishim.rules.requests import UID, Create
from unit.crishim.rules.stage import Crishim, Stage
from unit.keyring.samples import write_public

GOOD = signed(allocation())


def create(annotations: Mapping[str, str] = GOOD, **changes: object) -> Create:
    return replace(Create(annotations=annotations), **changes)  # type: ignore[arg-type]


def test_a_signed_grant_is_put_into_the_request_with_who_the_container_is(stage: Stage, crishim: Crishim) -> None:
    record = json.loads(crishim.rewrite(create()).annotations[CONTAINER.encode()])
    key = container_key(PodUid(UID), ContainerName("main"), 0)
    assert record == {"v": 1, "key": key, "gen": 1, "grants": {"gpu": [grant()]}}
    ((container, granted),) = stage.fake.asked
    assert (container.key, container.pod.uid, container.pod.name, container.pod.namespace, container.name) == (
        key,
        UID,
        "trainer",
        "default",
        "main",
    )
    assert granted.gen == 1
    assert set(granted.grants) == set(granted.parts) == {"gpu"}


def test_what_a_newer_scheduler_wrote_into_a_grant_reaches_plugins_and_record(stage: Stage, crishim: Crishim) -> None:
    newer = {"v": 1, "gen": 1, "more": 7} | allocation(grant(mode="burst", swap=GIB))
    record = json.loads(crishim.rewrite(create(signed(newer))).annotations[CONTAINER.encode()])
    assert record["grants"]["gpu"][0]["mode"] == "burst"
    ((_, granted),) = stage.fake.asked
    assert b'"swap":1073741824' in bytes(granted.grants[Kind("gpu")])  # type: ignore[call-overload]


def forged() -> dict[str, str]:
    return signed(allocation(), Ed25519PrivateKey.from_private_bytes(b"f" * 32))


def changed() -> dict[str, str]:
    return GOOD | {ALLOCATION: GOOD[ALLOCATION].replace("500", "900")}


STRANGER = key_id(Ed25519PrivateKey.from_private_bytes(b"f" * 32).public_key())
ANEW = "delete the pod, so that its successor gets an allocation of its own"
CANNOT = "partage: this pod's allocation cannot be read:"
NOT_HERE = "is not what is allowed there:"
ANNOTATIONS: dict[str, Mapping[str, str]] = {
    "unsigned": {ALLOCATION: GOOD[ALLOCATION]},
    "forged": forged(),
    "changed": changed(),
    "half a signature": GOOD | {SIGNATURE: GOOD[SIGNATURE][:40]},
    "of another pod": signed(allocation(pod="another-uid")),
    "of another node": signed(allocation(node="n2")),
    "truncated": signed(json.dumps(allocation())[:-9]),
    "oversized": signed(json.dumps(allocation() | {"padding": "x" * 256 * 1024})),
    "deep": signed("[" * 40 + "]" * 40),
    "of a later version": signed(allocation(v=2)),
    "with an impossible share": signed(allocation(grant(share=1001))),
    "that needs what we do not know": signed(allocation(crit=["gpu.swap"])),
}
SENTENCES = {
    "unsigned": "partage: this pod's allocation has no signature; only the scheduler may write alloc.partage.dev/ "
    f"annotations: {ANEW}",
    "forged": f"allocation: signed with key {STRANGER}, which this node does not trust; was the key rotated before its "
    "public half reached /etc/partage/keys.d?",
    "changed": f"allocation: the signature of key {key_id(KEY.public_key())} does not match; it was changed after it "
    "was signed",
    "half a signature": "allocation: the signature is not '<16 hex digits>:<88 characters of base64>'",
    "of another pod": f"partage: this pod's allocation was made for another pod; {ANEW}",
    "of another node": f"partage: this pod's allocation was made for another node; {ANEW}",
    "truncated": f"{CANNOT} $ {NOT_HERE} JSON (Input data was truncated); {ANEW}",
    "oversized": f"{CANNOT} $ {NOT_HERE} at most 262144 bytes; {ANEW}",
    "deep": f"{CANNOT} $ {NOT_HERE} a depth of 32; {ANEW}",
    "of a later version": f"{CANNOT} $.v {NOT_HERE} 1; {ANEW}",
    "with an impossible share": f"{CANNOT} $.containers.main.gpu[0].share {NOT_HERE} an integer from 0 to 1000; {ANEW}",
    "that needs what we do not know": "partage: this pod's allocation needs what this node does not know; known are: "
    "budgets, containers, crit, gang, gen, gpu.card, gpu.limit, gpu.memory, gpu.movable, gpu.role, gpu.share, "
    "gpu.tags, movable, node, pod, resize, suspended, v; upgrade partage on this node",
}
REFUSED = {what: (ANNOTATIONS[what], SENTENCES[what]) for what in ANNOTATIONS}


@pytest.mark.parametrize("what", REFUSED)
def test_an_allocation_is_refused_in_its_own_words(what: str, stage: Stage, crishim: Crishim) -> None:
    annotations, sentence = REFUSED[what]
    assert crishim.refusal(create(annotations)) == sentence
    assert crishim.refusal(create(annotations, attempt=7)) == sentence
    assert stage.fake.asked == []


@pytest.mark.parametrize("what", ["truncated", "oversized", "deep", "of a later version"])
@pytest.mark.parametrize("cards", [True, False], ids=["with cards", "without cards"])
def test_what_cannot_be_read_refuses_every_container_of_the_pod(what: str, cards: bool, stage: Stage) -> None:  # noqa: FBT001
    if not cards:
        stage.no_inventory()
    annotations, sentence = REFUSED[what]
    assert stage.crishim().refusal(create(annotations, container="sidecar")) == sentence


def test_keys_that_only_verify_serve_old_pods_and_removed_ones_do_not(stage: Stage, crishim: Crishim) -> None:
    old = Ed25519PrivateKey.from_private_bytes(b"o" * 32)
    file = write_public(stage.root / "etc/partage/keys.d", old)
    crishim.rewrite(create(signed(allocation(), old)))
    file.unlink()
    assert "which this node does not trust" in crishim.refusal(create(signed(allocation(), old), attempt=1))
    write_public(stage.root / "etc/partage/keys.d", old)
    crishim.rewrite(create(signed(allocation(), old), attempt=2))


def test_a_named_kind_that_is_critical_here_is_known(crishim: Crishim) -> None:
    crishim.rewrite(create(signed(allocation(crit=["gpu.share", "gen"]))))


def test_containers_that_the_allocation_does_not_name_have_no_grant(stage: Stage, crishim: Crishim) -> None:
    for name in ("sidecar", "init", "debugger-x7k2p"):
        crishim.passes(create(container=name))
        assert crishim.refusal(create(forged(), container=name)) == SENTENCES["forged"]
    crishim.passes(create(signed(allocation() | {"containers": {"main": {"gpu": []}}})))
    crishim.passes(create(signed(allocation() | {"containers": {"main": {}}})))
    for nothing in ("[ ]", "{\n}", "null"):
        crishim.passes(create(signed(with_foo(nothing))))
    assert stage.fake.asked == []


HOSTILE = {
    "no JSON": "{",
    "a number that is none": '{"v":1,"gen":1,"pod":"u","node":"n","containers":{"main":{"foo":1e999}}}',
    "many containers": json.dumps(allocation() | {"containers": {f"c{n}": {} for n in range(15_000)}}),
    "many fields": json.dumps(allocation(gen=0) | {f"k{n}": n for n in range(15_000)}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_an_unsigned_text_is_not_parsed(what: str, stage: Stage, crishim: Crishim) -> None:
    text = HOSTILE[what]
    assert len(text) < 256 * 1024
    for name in ("main", "side"):
        assert crishim.refusal(create({ALLOCATION: text}, container=name)) == SENTENCES["unsigned"]
        assert "does not match" in crishim.refusal(create(GOOD | {ALLOCATION: text}, container=name))
    assert not any(told.what == "defect" for told in stage.told)


@pytest.mark.parametrize("given", ["1e999", "1" * 5000, '[{"a":[1e400]}]', "0", "false", '""'])
def test_grants_of_an_unknown_kind_are_passed_on_as_they_were_written(
    given: str, stage: Stage, crishim: Crishim
) -> None:
    crishim.decision(create(signed(with_foo(given))))
    assert not any(told.what == "defect" for told in stage.told)
    ((_, granted),) = stage.fake.asked
    assert bytes(granted.grants[Kind("foo")]).decode() == given  # type: ignore[call-overload]


def with_foo(given: str) -> str:
    return json.dumps(allocation() | {"containers": {"main": {"foo": "?"}}}).replace('"?"', given)


class TestOlderAllocations:
    """`gen` only grows, also after the containers created from the newer allocation are gone."""

    SENTENCE = f"partage: this pod's allocation is older than one that was in force here before; {ANEW}"
    NEWER = signed(allocation(grant(share=100), gen=2))

    def test_an_older_one_is_refused_and_the_same_or_a_newer_one_is_not(self, crishim: Crishim) -> None:
        crishim.rewrite(create(self.NEWER))
        assert crishim.refusal(create(attempt=1)) == self.SENTENCE
        crishim.rewrite(create(self.NEWER, attempt=1))
        crishim.rewrite(create(signed(allocation(gen=3)), attempt=2))
        assert crishim.refusal(create(self.NEWER, attempt=3)) == self.SENTENCE

    def test_another_container_of_the_pod_counts_too(self, crishim: Crishim) -> None:
        crishim.rewrite(create(signed(allocation(grant(share=1), container="side", gen=2)), container="side"))
        assert crishim.refusal(create()) == self.SENTENCE

    def test_after_the_container_was_removed(self, stage: Stage, crishim: Crishim) -> None:
        crishim.rewrite(create(self.NEWER))
        stage.runtime.listed.clear()
        stage.now_s += 1000
        crishim.collect()
        assert stage.crishim().refusal(create(attempt=1)) == self.SENTENCE

    def test_after_everything_in_run_was_lost_the_runtimes_list_still_says_it(
        self, stage: Stage, crishim: Crishim
    ) -> None:
        crishim.rewrite(create(self.NEWER))
        for file in (stage.root / "run/partage/crishim/records/pods").iterdir():
            file.unlink()
        assert stage.crishim().refusal(create(attempt=1)) == self.SENTENCE

    def test_it_is_forgotten_with_the_pod(self, stage: Stage, crishim: Crishim) -> None:
        crishim.rewrite(create(self.NEWER))
        stage.runtime.listed.clear()
        stage.runtime.pods.clear()
        stage.now_s += 1000
        crishim.collect()
        assert list((stage.root / "run/partage/crishim/records/pods").iterdir()) == []

    def test_a_refused_container_raises_nothing(self, stage: Stage, crishim: Crishim) -> None:
        crishim.rewrite(create(signed(allocation(grant(share=1000), pod="other")), uid="other"))
        crishim.refusal(create(self.NEWER))
        stage.runtime.listed.clear()
        stage.now_s += 1000
        crishim.rewrite(create())


class TestCards:
    """The inventory file defines which cards exist."""

    def refused(self, stage: Stage, **changes: object) -> str:
        stage.write_inventory(inventory(card(grant()["card"], 0, **changes)))
        return stage.crishim().refusal(create())

    def test_a_card_that_is_not_here_is_refused(self, stage: Stage) -> None:
        stage.write_inventory(inventory(card("GPU-0000", 0)))
        assert stage.crishim().refusal(create()) == (
            f"partage: card {grant()['card']} is not on this node; was it taken out? Delete the pod to move it"
        )

    def test_a_lost_card_is_refused(self, stage: Stage) -> None:
        assert self.refused(stage, health="lost") == (
            f"partage: card {grant()['card']} is lost; see the node's kernel log. Delete the pod to move it"
        )

    @pytest.mark.parametrize(("pool", "whose"), [("kubelet", "kubelet"), ("dra", "DRA")])
    def test_a_card_that_others_hand_out_is_refused(self, stage: Stage, pool: str, whose: str) -> None:
        assert f"is handed out by {whose} on this node" in self.refused(stage, pool=pool)

    def test_on_a_degraded_card_containers_of_pods_that_are_here_restart(self, stage: Stage) -> None:
        stage.write_inventory(inventory(card(grant()["card"], 0, health="degraded: too hot")))
        stage.crishim().rewrite(create())

    @pytest.mark.parametrize("text", [None, "", "{", '{"v":9,"kinds":{}}', '{"v":1,"kinds":{"gpu":7}}'])
    def test_without_an_inventory_grants_are_refused(self, text: str | None, stage: Stage) -> None:
        if text is None:
            stage.no_inventory()
        else:
            stage.write_inventory(text)
        assert stage.crishim().refusal(create()) == (
            "partage: this node's inventory is missing or cannot be read; is partage-advertiser running? kubelet tries "
            "again"
        )

    def test_a_new_inventory_is_seen_at_once(self, stage: Stage, crishim: Crishim) -> None:
        stage.write_inventory(inventory(card("GPU-0000", 0)))
        crishim.refusal(create())
        stage.write_inventory(inventory())
        crishim.rewrite(create())
