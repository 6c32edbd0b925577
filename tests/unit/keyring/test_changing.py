"""The life cycle of keys: made, waiting, signing, retired, removed."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring import (
    KeyFolders,
    KeyKept,
    KeyRefused,
    Keyring,
    KeyUnknown,
    Use,
    add_pair,
    load_signing_key,
    overview,
    retire,
)
from partage_plugins.api.names import KeyId
from partage_plugins.codecs import key_id, sign, verify
from partage_plugins.errors import SignatureRefused
from unit.keyring.samples import files_below, new_pair, write_private, write_public


def uses(folders: KeyFolders) -> dict[KeyId, Use]:
    return {entry.id: entry.use for entry in overview(folders).entries}


def signed(folders: KeyFolders, text: str) -> str:
    return sign(text, load_signing_key(folders.private).private)


def test_rotation_never_refuses_a_good_signature_and_ends_with_the_old_key_refused(folders: KeyFolders) -> None:
    old = new_pair(folders)
    node = Keyring(folders.public)
    first = signed(folders, "first")

    new = new_pair(folders)
    assert set(node.current().keys) == {old, new}
    assert signed(folders, "meanwhile").startswith(f"{old}:")  # nodes may not have the new public half yet

    assert retire(folders, old).signs == new
    second = signed(folders, "second")
    assert second.startswith(f"{new}:")
    verify("first", first, node.current().keys)
    verify("second", second, node.current().keys)

    folders.public_file(old).unlink()
    verify("second", second, node.current().keys)
    with pytest.raises(SignatureRefused, match=f"signed with key {old}, which"):
        verify("first", first, node.current().keys)


def test_the_first_key_signs_at_once_and_later_ones_wait(folders: KeyFolders) -> None:
    first, second = new_pair(folders), new_pair(folders)
    assert uses(folders) == {first: Use.SIGNING, second: Use.WAITING}


def test_a_key_that_waits_is_retired_without_further_ado(folders: KeyFolders) -> None:
    first, second = new_pair(folders), new_pair(folders)
    assert retire(folders, second).signs == first
    assert uses(folders) == {first: Use.SIGNING, second: Use.VERIFY_ONLY}


def test_the_only_key_that_signs_is_kept_unless_forced(folders: KeyFolders) -> None:
    key = new_pair(folders)
    with pytest.raises(KeyKept, match="is the only key that can sign; make another first"):
        retire(folders, key)
    assert uses(folders) == {key: Use.SIGNING}
    assert retire(folders, key, force=True).signs is None
    assert uses(folders) == {key: Use.VERIFY_ONLY}
    assert overview(folders).faults == ()


def test_who_takes_over_is_never_guessed(folders: KeyFolders) -> None:
    first, second, third = (new_pair(folders) for _ in range(3))
    with pytest.raises(KeyKept, match="2 keys could take over"):
        retire(folders, first)
    retire(folders, second)
    assert retire(folders, first).signs == third


def test_retiring_writes_the_public_half_where_it_was_missing(folders: KeyFolders) -> None:
    old, _ = new_pair(folders), new_pair(folders)
    folders.public_file(old).unlink()
    retire(folders, old)
    assert uses(folders)[old] is Use.VERIFY_ONLY


def test_a_key_is_not_retired_while_its_public_half_is_damaged(folders: KeyFolders) -> None:
    old, _ = new_pair(folders), new_pair(folders)
    folders.public_file(old).write_bytes(b"damaged")
    with pytest.raises(KeyKept, match=f"{old}.pub exists and is not overwritten"):
        retire(folders, old)
    assert folders.private_file(old).exists()


def test_retiring_what_is_not_there_says_what_is(folders: KeyFolders) -> None:
    unknown = KeyId("0123456789abcdef")
    with pytest.raises(KeyUnknown, match="does not exist, so this machine signs with no key"):
        retire(folders, unknown)
    key = new_pair(folders)
    with pytest.raises(KeyUnknown, match=f"no good private half of {unknown}; it has: {key}"):
        retire(folders, unknown)


def test_a_bad_marker_stops_changes_before_anything_is_written(folders: KeyFolders) -> None:
    key, _ = new_pair(folders), new_pair(folders)
    (folders.private / "signing").write_text("nonsense")
    before = files_below(folders.public.parent)
    with pytest.raises(KeyRefused):
        retire(folders, key)
    with pytest.raises(KeyRefused):
        add_pair(folders, Ed25519PrivateKey.generate())
    assert files_below(folders.public.parent) == before


def test_a_node_with_public_halves_only_is_in_order(folders: KeyFolders) -> None:
    file = write_public(folders.public)
    seen = overview(folders)
    assert seen.faults == ()
    assert [(entry.id, entry.use, entry.private) for entry in seen.entries] == [(file.stem, Use.VERIFY_ONLY, None)]


def test_private_keys_of_which_none_is_named_are_a_fault(folders: KeyFolders) -> None:
    write_public(folders.public)
    write_private(folders.private)
    (fault,) = overview(folders).faults
    assert str(fault).startswith(f"{folders.private / 'signing'}: is missing, so none of the private keys here signs")


def test_a_marker_whose_key_is_gone_is_a_fault(folders: KeyFolders) -> None:
    key = new_pair(folders)
    folders.private_file(key).unlink()
    assert f"names {key}, whose private half is not here or is bad" in str(overview(folders).faults[0])


def test_faults_of_both_folders_are_seen_at_once_and_each_once(folders: KeyFolders) -> None:
    key = new_pair(folders)
    folders.private.chmod(0o777)
    folders.public_file(key).chmod(0o666)
    faults = [str(fault).split(":")[0] for fault in overview(folders).faults]
    assert faults == [str(folders.public_file(key)), str(folders.private)]


def test_the_overview_is_sorted_by_age_and_knows_a_key_by_either_half(folders: KeyFolders) -> None:
    private = Ed25519PrivateKey.generate()
    hidden = write_private(folders.private, private)
    shown = write_public(folders.public)
    entries = overview(folders).entries
    assert [entry.id for entry in entries] == [hidden.stem, shown.stem]
    assert entries[0].id == key_id(private.public_key())
    assert entries[0].public is None
