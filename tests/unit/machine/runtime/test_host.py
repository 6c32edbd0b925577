"""What a pod finds on the machine: made where it is not there, refused where it is something else, taken after."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from partage_cli.machine.pods.pod import Container, EmptyDir, HostPath, Metadata, Pod, Spec, Volume
from partage_cli.machine.runtime import host
from partage_cli.machine.runtime.plans import Dns, Premises, SandboxPlan, sandbox_plan
from partage_plugins.errors import Refused

UID = "0b6f1c1e-6f0e-4c39-9d53-2f5d2b1f3c11"


def prepared(root: Path, *volumes: Volume) -> SandboxPlan:
    pod = Pod(metadata=Metadata(name="p"), spec=Spec(containers=(Container(name="c", image="i"),), volumes=volumes))
    sandbox = sandbox_plan(pod, uid=UID, attempt=0, annotations={}, premises=Premises(root=str(root)))
    for _ in range(2):  # as after a death in between
        host.prepare(pod, sandbox)
    return sandbox


def of_host(path: Path, kind: str = "") -> Volume:
    return Volume(name="v", host_path=HostPath(path=str(path), type=kind))


def test_a_pods_own_volumes_are_open_to_its_containers_and_go_with_it(tmp_path: Path) -> None:
    sandbox = prepared(tmp_path, Volume(name="work", empty_dir=EmptyDir()))
    work = tmp_path / "var/lib/partage/machine/volumes" / UID / "work"
    assert work.stat().st_mode & 0o777 == 0o777
    assert (Path(sandbox.log_folder) / "c").is_dir()
    (work / "link").symlink_to("/etc")
    host.clear(UID, root=str(tmp_path), logs=sandbox.log_folder)
    assert not work.parent.exists()
    assert not Path(sandbox.log_folder).exists()
    assert Path("/etc").is_dir()
    host.clear(UID, root=str(tmp_path))


def test_what_is_missing_is_made_as_its_type_says(tmp_path: Path) -> None:
    prepared(tmp_path, of_host(tmp_path / "a/b"), of_host(tmp_path / "c/d", "DirectoryOrCreate"))
    prepared(tmp_path, of_host(tmp_path / "file", "FileOrCreate"))
    assert (tmp_path / "a/b").is_dir()
    assert (tmp_path / "c/d").is_dir()
    assert (tmp_path / "file").is_file()


@pytest.mark.parametrize("kind", ["Directory", "File", "Socket", "CharDevice", "BlockDevice", "Folder"])
def test_what_should_be_there_and_is_not_is_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(Refused, match="volume v"):
        prepared(tmp_path, of_host(tmp_path / "none", kind))


def test_what_is_of_another_kind_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for kind in ("Directory", "Socket"):
        with pytest.raises(Refused, match="is there and is no"):
            prepared(tmp_path, of_host(tmp_path / "file", kind))
    assert (tmp_path / "file").read_text() == "kept"
    prepared(tmp_path, of_host(tmp_path / "file", "File"), Volume(name="w", host_path=HostPath(path="/dev/null")))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        prepared(tmp_path, of_host(tmp_path / "s", "Socket"))


def test_a_link_in_place_of_the_pods_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "var/lib/partage/machine/volumes"
    folder.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (folder / UID).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="not a folder of ours"):
        prepared(tmp_path, Volume(name="work", empty_dir=EmptyDir()))
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_name_servers_on_the_loopback_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/resolv.conf").write_text("nameserver 127.0.0.53\noptions edns0\n")
    assert host.dns(tmp_path) == Dns()
    (tmp_path / "run/systemd/resolve").mkdir(parents=True)
    (tmp_path / "run/systemd/resolve/resolv.conf").write_text("nameserver 10.0.0.1\nsearch a b\n")
    assert host.dns(tmp_path) == Dns(servers=("10.0.0.1",), searches=("a", "b"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Dns()),
        ("# x\nnameserver\nnameserver ::1\nnameserver nonsense\n", Dns()),
        (
            "nameserver fe80::1%eth0\ndomain d\noptions ndots:2 rotate\n",
            Dns(servers=("fe80::1%eth0",), searches=("d",), options=("ndots:2", "rotate")),
        ),
        ("nameserver 1.1.1.1\n" * 9, Dns(servers=("1.1.1.1",) * 3)),
    ],
)
def test_a_resolv_conf_is_read_as_far_as_it_means_something(text: str, expected: Dns) -> None:
    assert host.resolv_conf(text) == expected
