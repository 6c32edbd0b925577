"""Anyone with the key accepts what was signed, on that pod and node, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring import KeyFolders, Keyring, add_pair
from partage_plugins.api import GPU, Allocation
from partage_plugins.api.keys import ALLOCATION, SIGNATURE
from partage_plugins.codecs import encode_allocation, key_id, sign
from partage_plugins.errors import Refused
from partage_scheduler.assembly import signer_of
from partage_scheduler.objects import ApiPod
from partage_scheduler.settings import SchedulerSettings
from partage_scheduler.signatures import MOST_ANNOTATION_BYTES, Signer, Trust
from support.kube import beside, until
from support.objects import allocation, grant, pod

Notes = dict[str, str]


def a_pod(notes: Notes | None = None, *, uid: str = "u1", node: str = "n1") -> ApiPod:
    return pod("p", uid=uid, node=node, annotations=notes)


def half_a_card(*, uid: str = "u1", node: str = "n1") -> Allocation:
    return allocation(uid, node, grant("GPU-1"))


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    add_pair(KeyFolders.at_root(tmp_path), Ed25519PrivateKey.generate())
    return signer_of(SchedulerSettings(root=tmp_path))


class Believer:
    def __init__(self, root: Path) -> None:
        self.refused: list[str] = []
        keyring = Keyring(KeyFolders.at_root(root).public)
        self._trust = Trust(keyring.current, [GPU], on_refused=lambda _pod, why: self.refused.append(why))

    def __call__(self, pod: ApiPod) -> Allocation | None:
        return self._trust.trusted(pod)


@pytest.fixture
def believes(signer: Signer, tmp_path: Path) -> Believer:
    return Believer(tmp_path)


def test_what_was_signed_is_believed(signer: Signer, believes: Believer) -> None:
    signed = signer.sign(a_pod(), half_a_card())
    assert believes(a_pod(dict(signed.annotations))) == half_a_card()
    assert not believes.refused


async def test_a_key_that_was_put_in_the_place_of_another_signs_without_a_new_start(
    signer: Signer, believes: Believer, tmp_path: Path
) -> None:
    folders, first = KeyFolders.at_root(tmp_path), signer.key.id
    added = add_pair(folders, Ed25519PrivateKey.generate())
    async with beside(signer.keep_fresh(every_s=0.005)):
        (folders.private / "signing").write_text("no key")
        await asyncio.sleep(0.02)
        assert signer.key.id == first
        (folders.private / "signing").write_text(added.id)
        await until(lambda: signer.key.id != first)
    signed = signer.sign(a_pod(), half_a_card())
    assert signed.annotations[SIGNATURE].startswith(f"{added.id}:")
    assert believes(a_pod(dict(signed.annotations))) == half_a_card()


def test_a_pod_that_was_given_nothing_has_nothing_written_on_it(signer: Signer, believes: Believer) -> None:
    nothing = msgspec.structs.replace(half_a_card(), containers={})
    assert not signer.sign(a_pod(), nothing).annotations
    assert believes(a_pod()) is None
    assert not believes.refused


Forgery = Callable[[Notes], tuple[Notes, ApiPod] | ApiPod]


@pytest.mark.parametrize(
    ("notes_of", "pod", "why"),
    [
        (lambda notes: {**notes, ALLOCATION: notes[ALLOCATION].replace("500", "100")}, {}, "does not match"),
        (lambda notes: {ALLOCATION: notes[ALLOCATION]}, {}, "signature is not"),
        (lambda notes: notes, {"uid": "u2"}, "that of pod u1"),
        (lambda notes: notes, {"node": "n2"}, "on node n1"),
    ],
)
def test_a_forgery_counts_for_nothing_and_is_told(
    signer: Signer, believes: Believer, notes_of: Callable[[Notes], Notes], pod: dict[str, str], why: str
) -> None:
    notes = notes_of(dict(signer.sign(a_pod(), half_a_card()).annotations))
    assert believes(a_pod(notes, **pod)) is None
    (told,) = believes.refused
    assert why in told


def test_a_key_that_nobody_knows_is_not_believed(believes: Believer) -> None:
    stranger = Ed25519PrivateKey.generate()
    text = encode_allocation(half_a_card())
    assert believes(a_pod({ALLOCATION: text, SIGNATURE: sign(text, stranger)})) is None
    assert key_id(stranger.public_key()) in believes.refused[0]


def test_a_pod_that_could_not_be_changed_any_more_is_not_bound(signer: Signer) -> None:
    """The API server would accept the binding, and then reject every change of the pod's status."""
    with pytest.raises(Refused, match="remove some of them"):
        signer.sign(a_pod({"notes": "x" * (MOST_ANNOTATION_BYTES - 200)}, node=""), half_a_card())
