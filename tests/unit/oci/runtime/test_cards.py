"""Where the guard is on, a container that requests no part of a card is created without any card."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from support.oci_program import Daemon, Program, line

pytestmark = pytest.mark.slow

needs_unshare = pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare of util-linux")

UVM = 511
CARD: dict[str, Any] = {"path": "/dev/nvidia0", "type": "c", "major": 195, "minor": 0}
NULL: dict[str, Any] = {"path": "/dev/null", "type": "c", "major": 1, "minor": 3}
BIND: dict[str, Any] = {"destination": "/data", "source": "/data", "type": "bind"}
HOOK: dict[str, Any] = {"path": "/usr/bin/other", "args": ["other", "/usr/bin/x-nvidia-y"]}
ALL: dict[str, Any] = {"allow": False, "access": "rwm"}


def nodes(*entries: Any) -> dict[str, Any]:
    return {"linux": {"devices": list(entries)}}


def rules(*entries: Any, devices: Any = None) -> dict[str, Any]:
    return {"linux": {"devices": devices, "resources": {"devices": list(entries)}}}


def mounts(*entries: Any) -> dict[str, Any]:
    return {"mounts": list(entries)}


def hooks(*entries: Any, when: str = "prestart") -> dict[str, Any]:
    return {"hooks": {when: list(entries)}}


def mount(source: str, destination: str = "/x") -> dict[str, Any]:
    return {"destination": destination, "source": source, "type": "bind"}


def after(script: str) -> tuple[str, ...]:
    """Run a command after this script, in a mount namespace of its own."""
    return ("unshare", "--mount", "--propagation", "private", "sh", "-c", f'{script} && exec "$@"', "-")


CLEANED = [
    (nodes(NULL, CARD), nodes(NULL)),
    (nodes(CARD, NULL, CARD, NULL, CARD), nodes(NULL, NULL)),
    (nodes(CARD, CARD), nodes()),
    (nodes(CARD | {"path": "/dev/other"}), nodes()),
    (nodes(NULL | {"path": "/dev//./x/../nvidia-caps/nvidia-cap1"}), nodes()),
    (nodes(NULL | {"path": "/dev/nvidia-uvm", "major": UVM}, NULL | {"major": UVM}), nodes()),
    (nodes(NULL | {"path": "/dev/dxg"}), nodes()),
    (rules(ALL, {"allow": True, "type": "c", "major": 195, "access": "rw"}), rules(ALL)),
    (rules({"allow": True, "major": 195}, {"allow": True, "type": "a", "major": 195}), rules()),
    (
        rules({"allow": True, "major": UVM}, devices=[NULL | {"path": "/dev/nvidia-uvm", "major": UVM}]),
        rules(devices=[]),
    ),
    (mounts(BIND, mount("/dev/nvidia0")), mounts(BIND)),
    (mounts(mount("/data", "/dev/nvidiactl"), BIND), mounts(BIND)),
    (mounts(mount("/dev/null", "/var/run/nvidia-container-devices/all")), mounts()),
    (mounts(mount("/dev/null", "/var/run//./nvidia-container-devices/0")), mounts()),
    (mounts(mount("/run/nvidia-persistenced/socket")), mounts()),
    (mounts(mount("/data", "dev/nvidia0")), mounts()),
    (hooks(HOOK, {"path": "/usr/bin/nvidia-container-runtime-hook"}), hooks(HOOK)),
    (hooks({"path": "/x/nvidia-ctk", "args": []}, when="createContainer"), hooks(when="createContainer")),
    (hooks({"path": "/bin/env", "args": ["env", "nvidia-cdi-hook"]}), hooks()),
    (hooks({"path": "/bin/sh", "args": ["sh", "/usr/bin/nvidia-cdi-hook"]}), hooks()),
]

LEFT = [
    nodes(NULL, CARD | {"path": "/dev/sda", "type": "b"}),
    nodes({"path": "/dev/dri/card0", "type": "c", "major": 226, "minor": 0}),
    rules(ALL, {"allow": True, "access": "rwm"}, {"allow": True, "major": 1}),
    rules({"allow": False, "major": 195}, {"major": 195}, {"allow": True, "type": "b", "major": 195}),
    rules({"allow": True, "major": -1}, {"allow": True, "major": 195.0}, {"allow": "true", "major": 195}),
    mounts(BIND, mount("/usr/lib/nvidia"), mount("/home/dev/nvidia0"), mount("/run", "/var/run/nvidia")),
    hooks(HOOK, {"path": "/opt/nvidia-tools/start"}, {"path": 7, "args": {"a": "nvidia-ctk"}}),
    {"process": {"env": ["NVIDIA_VISIBLE_DEVICES=all"], "args": ["/dev/nvidia0"]}},
    {"devices": [CARD], "linux": [CARD], "mounts": {"a": mount("/dev/nvidia0")}, "hooks": [[HOOK]]},
]


@pytest.mark.parametrize(("config", "cleaned"), CLEANED)
def test_the_guard_takes_out_what_is_a_card(program: Program, config: Any, cleaned: Any) -> None:
    program.configure("guard yes")
    done = program.create(config)
    assert (done.returncode, done.stderr) == (0, b"")
    assert program.config() == cleaned


@pytest.mark.parametrize("config", LEFT)
def test_the_guard_leaves_all_else(program: Program, config: Any) -> None:
    program.configure("guard yes")
    bundle, before = program.bundle(config), program.version()
    assert program.run("create", "--bundle", bundle, "c1").returncode == 0
    assert program.version() == before


@pytest.mark.parametrize(("config", "cleaned"), CLEANED)
def test_without_the_guard_the_file_is_not_touched(program: Program, config: Any, cleaned: Any) -> None:
    program.create(config)
    assert program.config() == config != cleaned


def test_a_container_that_asks_is_freed_of_other_cards_before_the_agent_is_asked(program: Program) -> None:
    asks = {"process": {"env": ["PARTAGE_SHARE=1"]}}
    with Daemon(program.socket, line(answer="no", why="full")):
        program.create(nodes(NULL, CARD) | asks)
    assert program.config() == nodes(NULL) | asks


def test_every_other_byte_stays(program: Program) -> None:
    card, null = json.dumps(CARD), json.dumps(NULL)
    text = ' { "linux" : {"devices":[ %s\n, %s ,%s ,\t%s ]\n} ,"é":"\\u00e9\\/", "n":1.50E+2 }\n'
    program.configure("guard yes")
    program.create((text % (card, null, card, card)).encode())
    written = (program.folder / "bundle/config.json").read_bytes()
    assert written == (text.replace("%s\n, %s ,%s ,\t%s", "%s") % null).encode()


def test_the_file_keeps_its_mode_and_owner_and_nothing_lies_beside_it(program: Program) -> None:
    program.configure("guard yes")
    file = program.bundle(nodes(CARD)) / "config.json"
    file.chmod(0o640)
    shutil.chown(file, 1234, 4321)
    assert program.run("create", "--bundle", file.parent, "c1").returncode == 0
    found = file.stat()
    assert (found.st_mode & 0o7777, found.st_uid, found.st_gid) == (0o640, 1234, 4321)
    assert program.config() == nodes()
    assert list(file.parent.iterdir()) == [file]


def test_a_name_alone_makes_no_number_of_other_devices_a_card(program: Program) -> None:
    """Otherwise a node with a card's name that is /dev/null would take /dev/null away."""
    program.configure("guard yes")
    program.create(rules({"allow": True, "type": "c", "major": 1}, devices=[NULL | {"path": "/dev/nvidia9"}, NULL]))
    assert program.config() == rules({"allow": True, "type": "c", "major": 1}, devices=[NULL])


@needs_unshare
def test_the_kernel_says_which_numbers_are_cards(program: Program) -> None:
    program.configure("guard yes")
    listed = program.folder / "devices"
    listed.write_text(
        "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n237 nvidia-caps\n\nBlock devices:\n  8 sd\n"
    )
    bundle = program.bundle(nodes(NULL, NULL | {"path": "/dev/a", "major": 237}, NULL | {"path": "/dev/b", "major": 8}))
    mounted = f"mount --bind {listed} /proc/devices"
    assert program.run("create", "--bundle", bundle, "c1", inside=after(mounted)).returncode == 0
    assert program.config() == nodes(NULL, NULL | {"path": "/dev/b", "major": 8})


UNREADABLE = [
    b"",
    b"{",
    b'{"a":1}}',
    b"\xef\xbb\xbf{}",
    b"[" * 65 + b"]" * 65,
    b'{"a":\x00}',
    b"{'a':1}",
    b'{"a":01}',
    b'{"a":"\n"}',
]


@pytest.mark.parametrize("content", UNREADABLE)
def test_a_config_that_cannot_be_read_is_refused_by_the_guard_alone(program: Program, content: bytes) -> None:
    assert program.create(content).returncode == 0
    program.configure("guard yes")
    done = program.create(content)
    path = program.folder / "bundle/config.json"
    said = f"partage: {path} can't be read, to keep cards out: it is not JSON, or is nested too deep\n"
    assert (done.returncode, done.stderr.decode()) == (1, said)


def test_a_config_that_is_not_there_or_too_large_is_refused_by_the_guard_alone(program: Program) -> None:
    (program.folder / "bundle").mkdir()
    create = ("create", "--bundle", program.folder / "bundle", "c1")
    for make, why in ((lambda _: None, b"No such file or directory"), (sparse, b"File too large")):
        make(program)
        program.configure()
        assert program.run(*create).returncode == 0
        program.configure("guard yes")
        assert program.run(*create).stderr.endswith(b"can't be read, to keep cards out: " + why + b"\n")


def sparse(program: Program) -> None:
    with (program.folder / "bundle/config.json").open("wb") as file:
        file.truncate((64 << 20) + 1)


@pytest.mark.parametrize("flag", ["--config", "-f"])
def test_another_config_than_the_bundles_is_refused_by_the_guard_alone(program: Program, flag: str) -> None:
    assert program.create({}).returncode == 0
    words = ("create", "--bundle", program.folder / "bundle", flag, "/other.json", "c1")
    assert program.run(*words).returncode == 0
    program.configure("guard yes")
    assert b"`--config` names another file" in program.run(*words).stderr


@needs_unshare
def test_a_config_that_cannot_be_written_is_a_refusal(program: Program) -> None:
    program.configure("guard yes")
    bundle = program.bundle(nodes(CARD))
    mounted = f"mount --bind {bundle} {bundle} && mount -o remount,bind,ro {bundle}"
    done = program.run("create", "--bundle", bundle, "c1", inside=after(mounted))
    said = f"partage: {bundle}/config.json can't be written, to take cards out: Read-only file system\n"
    assert (done.returncode, done.stdout, done.stderr.decode()) == (1, b"", said)


@needs_unshare
def test_a_config_that_could_not_be_written_whole_is_as_it_was(program: Program) -> None:
    program.configure("guard yes")
    bundle = program.bundle(nodes(CARD, NULL))
    full = f"cp {bundle}/config.json . && mount -t tmpfs -o size=4k full {bundle} && cp config.json {bundle}"
    shown = f'{full} && "$@"; ls {bundle}; cmp config.json {bundle}/config.json'
    inside = ("unshare", "--mount", "--propagation", "private", "sh", "-c", shown, "-")
    done = program.run("create", "--bundle", bundle, "c1", inside=inside, cwd=program.folder)
    said = f"partage: {bundle}/config.json can't be written, to take cards out: No space left on device\n"
    assert (done.returncode, done.stdout, done.stderr.decode()) == (0, b"config.json\n", said)
