"""The configuration that a runtime reports, in the forms of containerd 1.6, 1.7 and 2.x and of CRI-O."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from partage_base.cri import PeerRefused, RuntimeClient, RuntimeConfig
from partage_base.cri.runtime_config import read_config
from support import wire
from support.fake_runtime import FakeRuntime, InProcess

FOLDERS = ["/etc/cdi", "/var/run/cdi"]
NVIDIA = {
    "runtimeType": "io.containerd.runc.v2",
    "runtimePath": "",
    "options": {"BinaryName": "/usr/bin/nvidia-container-runtime", "SystemdCgroup": True},
}


def containerd(default: str = "runc", **settings: Any) -> bytes:
    """The configuration in the forms of those versions, shortened: `crictl info` shows it as `config`."""
    kata = {"runtimeType": "io.containerd.kata.v2", "runtimePath": "", "options": None}
    runc = {"runtimeType": "io.containerd.runc.v2", "runtimePath": "", "options": {"BinaryName": "", "Root": ""}}
    handlers = {"runc": runc, "nvidia": NVIDIA, "kata": kata}
    section = {"snapshotter": "overlayfs", "defaultRuntimeName": default, "runtimes": handlers}
    return json.dumps({"containerd": section, "enableSelinux": False, **settings}).encode()


@pytest.mark.parametrize(
    ("text", "cdi"),
    [
        (containerd(), None),  # 1.6, which lacks CDI
        (containerd(enableCDI=False, cdiSpecDirs=FOLDERS), False),  # default of 1.7
        (containerd(enableCDI=True, cdiSpecDirs=FOLDERS), True),
        (containerd(enableCDI=None, cdiSpecDirs=FOLDERS), True),  # from 2.0 on, unset means enabled
        (containerd(cdiSpecDirs=FOLDERS), True),  # from 2.4 on, always enabled
        (containerd(cdiSpecDirs=["/etc/cdi"]), False),
        (containerd(enableCDI=True, cdiSpecDirs=["/var/run/cdi/"]), True),
        (containerd(enableCDI=True, cdiSpecDirs=["/run/cdi"]), True),
        (containerd(enableCDI=True, cdiSpecDirs=["/etc/cdi"]), False),
        (containerd(enableCDI=True, cdiSpecDirs=None), False),
    ],
)
def test_our_devices_are_taken_only_where_the_runtime_says_so(text: bytes, cdi: bool | None) -> None:  # noqa: FBT001
    assert read_config(text).takes_our_specs is cdi


@pytest.mark.parametrize(
    ("text", "restores"),
    [
        (containerd(), None),  # before 2.2.7 and 2.3.4, and from 2.4 on
        (containerd(enableCRIU=None, enableExperimentalRestoreViaCreate=False), False),
        (containerd(enableCRIU=None, enableExperimentalRestoreViaCreate=True), True),
    ],
)
def test_a_runtime_restores_by_its_own_word_alone(text: bytes, restores: bool | None) -> None:  # noqa: FBT001
    assert read_config(text).restores is restores


def test_the_program_of_a_handler_is_the_one_that_runs_the_container() -> None:
    config = read_config(containerd(default="nvidia"))
    assert config.default_handler == "nvidia"
    assert config.program_of("") == config.program_of("nvidia") == "/usr/bin/nvidia-container-runtime"
    assert config.program_of("kata") == "io.containerd.kata.v2"
    assert config.program_of("runc") == "io.containerd.runc.v2"
    assert config.program_of("crun") is None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        b'{"sandboxImage":"registry.example/pause:3.10"}',  # CRI-O
        b'{"containerd":{"runtimes":3},"enableCDI":true}',
        b'{"containerd":null,"enableCDI":true}',
    ],
)
def test_what_is_not_containerds_says_nothing(text: bytes) -> None:
    assert read_config(text) == RuntimeConfig()
    assert RuntimeConfig().program_of("") is None


def may_restore(version: str, name: str = "containerd", *, restores: bool | None = None) -> bool:
    runtime = FakeRuntime()
    runtime.setup = RuntimeConfig(programs={"runc": "runc"}, restores=restores)
    runtime.version = name, version
    return asyncio.run(runtime.client.config()).may_restore


def test_versions_that_restore_and_do_not_say_so_may() -> None:
    for version in ("v2.1.0", "2.1.4~ds1-2", "v2.1.0-rc.1", "v2.2.6", "v2.3.0", "v2.3.3-3-gabc"):
        assert may_restore(version)
    for version in ("v2.0.9", "1.7.35", "v2.2.7", "v2.3.4", "v2.4.0", "v12.1.0", "", "v2", "later"):
        assert not may_restore(version)
    assert not may_restore("2.1.0", "cri-o")
    assert not may_restore("v2.2.6", restores=False)


def test_a_runtime_that_does_not_tell_its_version_is_not_known_to_restore() -> None:
    def answer(method: str, _request: bytes) -> bytes:
        if method.endswith("/Version"):
            raise PeerRefused("s", 12, "unknown")
        return wire.message((2, wire.pair("config", containerd())))

    assert not asyncio.run(RuntimeClient(InProcess(answer)).config()).may_restore


class Connected(InProcess):
    """A client whose connection tests replace."""

    made: object | None = None

    @property
    def connection(self) -> object | None:
        return self.made


def test_it_is_asked_again_once_the_runtime_may_have_started_again() -> None:
    says = containerd(enableExperimentalRestoreViaCreate=False)
    answer = wire.message((2, wire.pair("golang", "go1.26")), (2, wire.pair("config", says)))
    client = Connected(lambda _method, _request: answer)
    runtime = RuntimeClient(client)

    def asked() -> int:
        assert asyncio.run(runtime.config()).default_handler == "runc"
        return len(client.asked)

    assert asked() == 1
    assert asked() == 2, "before there is a connection nothing is known to hold"
    for connection in (object(), object()):
        client.made, before = connection, len(client.asked)
        assert [asked(), asked()] == [before + 1, before + 1]
    assert set(client.asked) == {("/runtime.v1.RuntimeService/Status", wire.message((1, 1)))}
