"""The cluster's keys and settings on the host: never without a key, and a person's settings are kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring import encode_public, load_public_keys
from partage_cli.rollout.installer.deliveries import OURS, NoKeys, TooMuch, deliver_keys, deliver_settings, take_back
from partage_plugins.codecs.signature import key_id

SETTINGS = b'[crishim]\ntrusted_namespaces = ["gpu-operator"]\n'


def nobody(_line: str) -> None: ...


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    folder = tmp_path / "mounted"
    folder.mkdir(mode=0o755)
    return folder


@pytest.fixture
def host(tmp_path: Path) -> Path:
    host = tmp_path / "host"
    host.mkdir()
    return host


def add_key(folder: Path) -> str:
    public = Ed25519PrivateKey.generate().public_key()
    name = f"{key_id(public)}.pub"
    (folder / name).write_bytes(encode_public(public))
    (folder / name).chmod(0o644)
    return name


def trusted(host: Path) -> set[str]:
    return {path.name for path in (host / "etc/partage/keys.d").iterdir()}


def test_the_hosts_keys_become_those_of_the_cluster(mounted: Path, host: Path) -> None:
    first, second = add_key(mounted), add_key(mounted)
    said: list[str] = []
    deliver_keys(mounted, host, said.append)
    assert said == [f"wrote /etc/partage/keys.d/{name}, which was missing" for name in sorted((first, second))]
    assert trusted(host) == {first, second}
    assert load_public_keys(host / "etc/partage/keys.d").faults == ()
    (mounted / first).unlink()
    third = add_key(mounted)
    said.clear()
    deliver_keys(mounted, host, said.append)
    assert trusted(host) == {second, third}
    assert said == [
        f"wrote /etc/partage/keys.d/{third}, which was missing",
        f"removed /etc/partage/keys.d/{first}, which the cluster has no more",
    ]


def test_a_cluster_without_keys_takes_none_away(mounted: Path, host: Path) -> None:
    name = add_key(mounted)
    deliver_keys(mounted, host, nobody)
    (mounted / name).unlink()
    with pytest.raises(NoKeys, match="see the ConfigMap partage-keys"):
        deliver_keys(mounted, host, nobody)
    with pytest.raises(NoKeys):
        deliver_keys(mounted / "absent", host, nobody)
    assert trusted(host) == {name}


def test_one_that_is_damaged_in_the_cluster_stays_on_the_host(mounted: Path, host: Path) -> None:
    first, second = add_key(mounted), add_key(mounted)
    deliver_keys(mounted, host, nobody)
    (mounted / first).write_bytes(b"no key")
    deliver_keys(mounted, host, nobody)
    assert trusted(host) == {first, second}
    assert load_public_keys(host / "etc/partage/keys.d").faults == ()


def test_one_that_was_changed_on_the_host_is_made_right_and_what_is_right_is_not_written_again(
    mounted: Path, host: Path
) -> None:
    first, second = add_key(mounted), add_key(mounted)
    deliver_keys(mounted, host, nobody)
    folder = host / "etc/partage/keys.d"
    (folder / first).write_bytes(b"changed")
    before = (folder / second).stat()
    said: list[str] = []
    deliver_keys(mounted, host, said.append)
    assert said == [f"wrote /etc/partage/keys.d/{first}, which was other than the cluster has it"]
    assert load_public_keys(folder).faults == ()
    assert (folder / second).stat() == before


def test_settings_are_delivered_and_changed_there(mounted: Path, host: Path) -> None:
    assert deliver_settings(mounted, host, nobody) is None
    assert not (host / "etc").exists()
    (mounted / "partage.toml").write_bytes(SETTINGS)
    assert deliver_settings(mounted, host, nobody) is None
    assert (host / "etc/partage/partage.toml").read_bytes() == OURS + SETTINGS
    (mounted / "partage.toml").write_bytes(b"[common]\n")
    deliver_settings(mounted, host, nobody)
    assert (host / "etc/partage/partage.toml").read_bytes() == OURS + b"[common]\n"


def test_settings_of_a_person_stay(mounted: Path, host: Path) -> None:
    (mounted / "partage.toml").write_bytes(SETTINGS)
    (host / "etc/partage").mkdir(parents=True)
    (host / "etc/partage/partage.toml").write_bytes(b"# mine\n")
    assert (
        deliver_settings(mounted, host, nobody)
        == "/etc/partage/partage.toml of the host was written by a person and stays"
    )
    assert (host / "etc/partage/partage.toml").read_bytes() == b"# mine\n"


def test_settings_that_are_too_large_are_refused(mounted: Path, host: Path) -> None:
    (mounted / "partage.toml").write_bytes(b"#" * (257 << 10))
    with pytest.raises(TooMuch, match="see the ConfigMap partage-node"):
        deliver_settings(mounted, host, nobody)


def test_all_that_was_delivered_is_taken_back_and_nothing_else(mounted: Path, host: Path) -> None:
    add_key(mounted)
    (mounted / "partage.toml").write_bytes(SETTINGS)
    deliver_keys(mounted, host, nobody)
    deliver_settings(mounted, host, nobody)
    take_back(host)
    take_back(host)
    assert list((host / "etc").iterdir()) == []
    (host / "etc/partage").mkdir()
    (host / "etc/partage/partage.toml").write_bytes(b"# mine\n")
    take_back(host)
    assert (host / "etc/partage/partage.toml").exists()
