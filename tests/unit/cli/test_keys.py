"""`partage keys` from the command line: a process, its output, its exit code and the resulting files."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from partage_base.keyring import KeyFolders, add_pair, load_public_keys, load_signing_key, overview
from unit.cli.program import PARTAGE, environment, partage, process

pytestmark = pytest.mark.slow  # each test starts processes


def new(root: Path) -> str:
    return add_pair(KeyFolders.at_root(root), Ed25519PrivateKey.generate()).id


def listed(root: Path) -> dict[str, str]:
    return {entry.id: entry.use.value for entry in overview(KeyFolders.at_root(root)).entries}


def test_new_prints_the_id_alone_and_tells_people_where_the_files_are(tmp_path: Path) -> None:
    done = partage(tmp_path, "keys", "new")
    key = done.stdout.rstrip("\n")
    folders = KeyFolders.at_root(tmp_path)
    assert re.fullmatch("[0-9a-f]{16}", key)
    assert str(folders.private_file(load_signing_key(folders.private).id)) in done.stderr
    assert f"{folders.public / key}.pub" in done.stderr
    assert f"signs now:    {key}" in done.stderr


def test_a_second_pair_says_that_the_first_still_signs(tmp_path: Path) -> None:
    first = new(tmp_path)
    assert f"signs now:    {first}" in partage(tmp_path, "keys", "new").stderr


def test_dir_puts_a_pair_elsewhere(tmp_path: Path) -> None:
    done = partage(tmp_path, "keys", "new", "--dir", str(tmp_path / "mine"))
    assert (tmp_path / "mine/keys.d" / f"{done.stdout.strip()}.pub").is_file()
    assert not (tmp_path / "etc").exists()


def test_public_prints_pem_of_the_key_that_signs_or_of_the_one_named(tmp_path: Path) -> None:
    first, second = new(tmp_path), new(tmp_path)
    folders = KeyFolders.at_root(tmp_path)
    keys = load_public_keys(folders.public).keys
    by_default = partage(tmp_path, "keys", "public").stdout
    by_name = partage(tmp_path, "keys", "public", second).stdout
    assert [load_pem_public_key(pem.encode()) for pem in (by_default, by_name)] == [
        keys[load_signing_key(folders.private).id],
        next(key for name, key in keys.items() if name == second),
    ]
    assert first != second


def test_public_works_from_the_private_half_alone(tmp_path: Path) -> None:
    key = new(tmp_path)
    file = tmp_path / f"etc/partage/keys.d/{key}.pub"
    before = file.read_text()
    file.unlink()
    assert partage(tmp_path, "keys", "public", key).stdout == before


def test_public_without_a_key_that_signs_takes_the_only_one_and_guesses_no_other(tmp_path: Path) -> None:
    first = new(tmp_path)
    partage(tmp_path, "keys", "retire", first, "--force")
    assert partage(tmp_path, "keys", "public").returncode == 0
    second = new(tmp_path)
    partage(tmp_path, "keys", "retire", second, "--force")
    done = partage(tmp_path, "keys", "public")
    assert done.returncode == 1
    assert done.stderr.startswith("partage: no key signs here, so say which is meant: ")
    assert {first, second} <= set(re.findall("[0-9a-f]{16}", done.stderr))


def test_public_of_a_key_that_nobody_knows_is_a_failure(tmp_path: Path) -> None:
    new(tmp_path)
    done = partage(tmp_path, "keys", "public", "0123456789abcdef")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("partage: there is no key 0123456789abcdef in ")


def test_what_is_no_key_id_is_wrong_usage(tmp_path: Path) -> None:
    done = partage(tmp_path, "keys", "retire", "../../etc/passwd")
    assert done.returncode == 2
    assert "allowed: 16 lower-case hex digits" in done.stderr


def test_list_is_a_table_for_people(tmp_path: Path) -> None:
    first, second = new(tmp_path), new(tmp_path)
    partage(tmp_path, "keys", "retire", first)
    done = partage(tmp_path, "keys", "list")
    assert done.returncode == 0
    header, *rows = [re.split(r"\s{2,}", line) for line in done.stdout.splitlines()]
    assert header == ["ID", "USE", "FILE", "AGE"]
    uses = {row[0]: row[1:3] for row in rows}
    assert uses == {
        first: ["verify only", str(tmp_path / f"etc/partage/keys.d/{first}.pub")],
        second: ["signing", str(tmp_path / f"etc/partage/keys.d/{second}.pub")],
    }
    wide = partage(tmp_path, "keys", "list", "-o", "wide").stdout
    assert "PRIVATE" in wide
    assert f"{second}.key" in wide


def test_list_as_json_has_everything(tmp_path: Path) -> None:
    key = new(tmp_path)
    (row,) = json.loads(partage(tmp_path, "keys", "list", "-o", "json").stdout)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row.pop("since"))
    assert row == {
        "id": key,
        "use": "signing",
        "public": str(tmp_path / f"etc/partage/keys.d/{key}.pub"),
        "private": str(tmp_path / f"etc/partage/signing.d/{key}.key"),
    }


def test_list_with_a_bad_file_names_it_on_stderr_lists_the_rest_and_exits_3(tmp_path: Path) -> None:
    key = new(tmp_path)
    bad = tmp_path / "etc/partage/keys.d/bad.pub"
    bad.write_text("nonsense")
    done = partage(tmp_path, "keys", "list")
    assert done.returncode == 3
    assert done.stderr.startswith(f"partage: {bad}: is not PEM; allowed: ")
    assert key in done.stdout


def test_list_where_there_are_no_keys_exits_3(tmp_path: Path) -> None:
    done = partage(tmp_path, "keys", "list")
    assert (done.returncode, done.stdout.split()) == (3, ["ID", "USE", "FILE", "AGE"])
    assert "keys.d: can't be read: No such file or directory" in done.stderr


def test_retire_removes_the_private_half_only_and_says_what_was_done(tmp_path: Path) -> None:
    first, second = new(tmp_path), new(tmp_path)
    done = partage(tmp_path, "keys", "retire", first)
    assert (done.returncode, done.stdout) == (0, "")
    assert f"removed the private half of {first}; " in done.stderr
    assert f"signs now:    {second}" in done.stderr
    assert listed(tmp_path) == {first: "verify only", second: "signing"}
    assert not (tmp_path / f"etc/partage/signing.d/{first}.key").exists()


def test_retire_refuses_the_only_key_that_signs_unless_forced(tmp_path: Path) -> None:
    key = new(tmp_path)
    done = partage(tmp_path, "keys", "retire", key)
    assert done.returncode == 1
    assert done.stderr.startswith(f"partage: {key} is the only key that can sign; make another first")
    assert listed(tmp_path) == {key: "signing"}
    forced = partage(tmp_path, "keys", "retire", key, "--force")
    assert (forced.returncode, forced.stderr.splitlines()[-1]) == (0, "no key signs now")
    assert listed(tmp_path) == {key: "verify only"}


def test_several_processes_at_once_make_pairs_of_which_exactly_one_signs(tmp_path: Path) -> None:
    commands = [*PARTAGE, "--root", str(tmp_path), "keys", "new"]
    started = [
        subprocess.Popen(commands, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    made = [process.communicate() for process in started]
    assert [process.returncode for process in started] == [0] * 4, made
    uses = listed(tmp_path)
    assert sorted(uses) == sorted(out.strip() for out, _ in made)
    assert sorted(uses.values()) == ["signing", "waiting", "waiting", "waiting"]
    assert partage(tmp_path, "keys", "list").returncode == 0


def test_a_file_that_may_not_grow_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    done = process(tmp_path, "keys", "new", start='ulimit -f 0; exec "$@"')
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"partage: /.+/signing\.d/[0-9a-f]{16}\.key: File too large \[PTG103\]\n", done.stderr)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_a_read_only_place_is_one_line_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "etc").write_text("in the way")
    done = partage(tmp_path, "keys", "new")
    assert done.returncode == 1
    assert done.stderr == f"partage: {tmp_path}/etc/partage: Not a directory [PTG103]\n"


@pytest.mark.parametrize("command", ["new", "public", "list", "retire"])
def test_every_command_has_examples_and_says_where_keys_are(command: str, tmp_path: Path) -> None:
    done = partage(tmp_path, "keys", command, "--help")
    assert "Examples:" in done.stdout
    assert f"partage keys {command}" in done.stdout
    assert "default: ROOT/etc/partage" in " ".join(done.stdout.split())
