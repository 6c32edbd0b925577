"""Loading a key folder: each file yields a key or one fault that names it and says what is allowed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from partage_base.keyring import KeyFolders, KeyRefused, load_private_keys, load_public_keys, load_signing_key
from partage_base.keyring.files import MOST_BYTES
from unit.keyring.samples import new_pair, write, write_private, write_public

AnyPrivate = Ed25519PrivateKey | X25519PrivateKey | rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

ED: Final = Ed25519PrivateKey.generate()
RSA: Final = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC: Final = ec.generate_private_key(ec.SECP256R1())


def spki(key: AnyPrivate) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def pkcs8(key: AnyPrivate) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


NO_PUBLIC_KEYS: Final = {
    "is empty": b" \n",
    "is not PEM": b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA somebody@somewhere\n",
    "holds another kind of key, RSAPublicKey": spki(RSA),
    "holds another kind of key, E": spki(EC),
    "holds another kind of key, X25519PublicKey": spki(X25519PrivateKey.generate()),
    "holds a private key (PRIVATE KEY)": pkcs8(ED),
    "holds something else (RSA PUBLIC KEY)": RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.PKCS1),
    "is PEM with more around it, or cut off": spki(ED) + spki(Ed25519PrivateKey.generate()),
    "is PEM, but the key in it can't be read": b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
}
NO_PRIVATE_KEYS: Final = {
    "holds another kind of key, RSAPrivateKey": pkcs8(RSA),
    "holds another kind of key, E": pkcs8(EC),
    "holds another kind of key, X25519PrivateKey": pkcs8(X25519PrivateKey.generate()),
    "holds an encrypted private key": ED.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    ),
    "holds a public key": spki(ED),
    "holds a private key (RSA PRIVATE KEY)": RSA.private_bytes(
        Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
    ),
    "is PEM with more around it, or cut off": pkcs8(ED)[:60],
}


def only_fault(folder: Path) -> str:
    loaded = load_public_keys(folder)
    (fault,) = loaded.faults
    assert isinstance(fault, KeyRefused)
    return str(fault)


def test_every_good_public_file_verifies(tmp_path: Path) -> None:
    files = [write_public(tmp_path) for _ in range(3)]
    loaded = load_public_keys(tmp_path)
    assert sorted(loaded.keys) == sorted(file.stem for file in files)
    assert loaded.faults == ()


@pytest.mark.parametrize("why", NO_PUBLIC_KEYS)
def test_what_is_no_public_key_is_named_and_the_good_ones_go_on(why: str, tmp_path: Path) -> None:
    good = write_public(tmp_path)
    bad = write(tmp_path / "bad.pub", NO_PUBLIC_KEYS[why], 0o644)
    assert only_fault(tmp_path).startswith(f"{bad}: {why}")
    assert "; allowed: one Ed25519 public key as PEM (SPKI)" in only_fault(tmp_path)
    assert list(load_public_keys(tmp_path).keys) == [good.stem]


@pytest.mark.parametrize("why", NO_PRIVATE_KEYS)
def test_what_is_no_private_key_is_named(why: str, tmp_path: Path) -> None:
    bad = write(tmp_path / "bad.key", NO_PRIVATE_KEYS[why], 0o600)
    (fault,) = load_private_keys(tmp_path).faults
    assert str(fault).startswith(f"{bad}: {why}")
    assert "; allowed: one Ed25519 private key as PEM (PKCS8" in str(fault)


def test_text_around_a_key_is_refused_since_nobody_would_see_which_key_counts(tmp_path: Path) -> None:
    write(tmp_path / "bad.pub", b"# our key\n" + spki(ED), 0o644)
    assert "more around it" in only_fault(tmp_path)


def test_line_ends_of_other_systems_are_read(tmp_path: Path) -> None:
    file = write_public(tmp_path, ED)
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert list(load_public_keys(tmp_path).keys) == [file.stem]


def test_a_file_that_is_not_named_after_its_key_is_refused_with_the_right_name(tmp_path: Path) -> None:
    file = write_public(tmp_path)
    moved = file.rename(tmp_path / "scheduler.pub")
    told = only_fault(tmp_path)
    assert told == f"{moved}: holds the key {file.stem}; allowed: a file is named after its key: {file.name}"


def test_a_private_file_among_public_ones_is_reported_and_not_opened(tmp_path: Path) -> None:
    write_public(tmp_path)
    os.mkfifo(tmp_path / "left-here.key")
    assert "signing.d" in only_fault(tmp_path)


def test_a_file_larger_than_any_key_is_refused_unread(tmp_path: Path) -> None:
    write(tmp_path / "large.pub", spki(ED) + b" " * MOST_BYTES, 0o644)
    assert f"is too large for a key; allowed: at most {MOST_BYTES} bytes" in only_fault(tmp_path)


def a_pipe(file: Path) -> None:
    os.mkfifo(file, 0o644)


def a_folder(file: Path) -> None:
    file.mkdir()


def a_link_to_nowhere(file: Path) -> None:
    file.symlink_to("nowhere")


def a_link_to_itself(file: Path) -> None:
    file.symlink_to(file.name)


@pytest.mark.parametrize("make", [a_pipe, a_folder, a_link_to_nowhere, a_link_to_itself])
def test_what_is_no_file_is_refused_and_nothing_waits_for_it(make: Callable[[Path], None], tmp_path: Path) -> None:
    good = write_public(tmp_path)
    make(tmp_path / "odd.pub")
    assert only_fault(tmp_path).startswith(f"{tmp_path / 'odd.pub'}: ")
    assert list(load_public_keys(tmp_path).keys) == [good.stem]


def test_keys_are_found_as_kubernetes_mounts_them_by_links_into_a_hidden_folder(tmp_path: Path) -> None:
    file = write_public(tmp_path / "..2026_11_21")
    (tmp_path / "..data").symlink_to("..2026_11_21")
    (tmp_path / file.name).symlink_to(f"..data/{file.name}")
    loaded = load_public_keys(tmp_path)
    assert (list(loaded.keys), loaded.faults) == ([file.stem], ())


def test_other_files_and_hidden_ones_are_nobodys_business(tmp_path: Path) -> None:
    write_public(tmp_path)
    (tmp_path / "README").write_text("ours")
    (tmp_path / ".half.pub").write_text("being written")
    assert load_public_keys(tmp_path).faults == ()


def test_a_missing_folder_and_one_without_a_key_are_told_apart(tmp_path: Path) -> None:
    assert only_fault(tmp_path / "none") == (
        f"{tmp_path / 'none'}: can't be read: No such file or directory; allowed: a folder that we may read"
    )
    assert "holds no public key; allowed: at least one <key id>.pub" in only_fault(tmp_path)


def test_a_file_where_a_folder_belongs_is_refused(tmp_path: Path) -> None:
    file = write_public(tmp_path)
    assert "Not a directory" in only_fault(file)


def test_a_file_name_can_not_break_the_line_of_its_fault(tmp_path: Path) -> None:
    write(tmp_path / "a\nb\x1b[31m\udcff.pub", b"", 0o644)
    assert only_fault(tmp_path).startswith(f"{tmp_path}/a?b?[31m?.pub: is empty")


def test_the_key_that_the_marker_names_signs(folders: KeyFolders) -> None:
    first, second = new_pair(folders), new_pair(folders)
    assert load_signing_key(folders.private).id == first
    (folders.private / "signing").write_text(second)
    assert load_signing_key(folders.private).id == second


def test_no_key_signs_that_nobody_named(tmp_path: Path) -> None:
    write_private(tmp_path)
    with pytest.raises(KeyRefused, match="signing: can't be read: No such file"):
        load_signing_key(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "main", "0123456789abcdef 0123456789abcdef", "0123456789ABCDEF", "../../etc/pass"]
)
def test_a_marker_that_names_no_key_is_an_error(text: str, folders: KeyFolders) -> None:
    new_pair(folders)
    (folders.private / "signing").write_text(text)
    with pytest.raises(KeyRefused, match="does not name a key; allowed: a key id: 16 lower-case hex digits"):
        load_signing_key(folders.private)


def test_a_bad_signing_key_is_an_error_even_beside_a_good_one(folders: KeyFolders) -> None:
    first, _ = new_pair(folders), new_pair(folders)
    folders.private_file(first).write_bytes(b"gone")
    with pytest.raises(KeyRefused, match=f"{first}.key: is not PEM"):
        load_signing_key(folders.private)
