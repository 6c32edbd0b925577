"""Concurrent installers of a few nodes against a fake API server: order, failures, and kills at every point."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, TypeVar

import pytest

from partage_base.kube import leases_path, node_path, nodes_path
from partage_cli.rollout.installer.reported_node import ReportedNode
from partage_cli.rollout.node_state import CANARY, INSTALL, INSTALLED, DesiredState, InstallReport, telling
from support.fake_api import FakeApi, Refuse
from support.kube import access_to, until
from support.rollout_stage import V1, V2, Mortal, RolloutStage, a_made_up_node

T = TypeVar("T")
NAMES = ("n00", "n01", "n02")


@pytest.fixture
async def stage(api: FakeApi, tmp_path: Path) -> AsyncIterator[RolloutStage]:
    stage = RolloutStage(tmp_path, lambda _name: Mortal(access_to(api.url)))
    for name in NAMES:
        api.objects.create(nodes_path(), a_made_up_node(name))
    yield stage
    await stage.close()


def told(api: FakeApi, name: str) -> tuple[str, str, str]:
    """The version, state and reason."""
    text = api.objects.get(node_path(name))["metadata"].get("annotations", {}).get(INSTALLED)
    said = json.loads(text) if text else {}
    return said.get("version", ""), said.get("state", ""), said.get("why", "")


def states(api: FakeApi, version: str = V1) -> list[str]:
    return [state if at == version else "" for at, state, _ in (told(api, name) for name in NAMES)]


def holders(api: FakeApi) -> list[str]:
    leases = api.objects.select(leases_path("partage-system"), {})
    return [holder for lease in leases if (holder := lease["spec"].get("holderIdentity"))]


async def all_in_force(api: FakeApi, version: str = V1) -> None:
    await until(lambda: states(api, version) == ["in-force"] * len(NAMES))


async def come_to(api: FakeApi, stage: RolloutStage, state: str) -> None:
    """Starts the first node's installer alone and waits until it has this state."""
    stage.start(NAMES[0])
    await until(lambda: states(api)[0] == state)


async def hung_at_work(api: FakeApi, stage: RolloutStage) -> None:
    """Hangs the first node's work while it holds the Lease and the others wait for it."""
    at_work = asyncio.Event()

    async def hang() -> None:
        at_work.set()
        await asyncio.Event().wait()

    stage.host(NAMES[0]).at_work = hang
    stage.start(NAMES[0])
    await at_work.wait()
    stage.start(*NAMES[1:])
    await until(lambda: states(api)[1:] == ["waiting", "waiting"])


async def test_all_come_into_force_one_at_a_time_and_the_lease_is_given_back(api: FakeApi, stage: RolloutStage) -> None:
    at_work = [0]

    async def work() -> None:
        at_work.append(at_work[-1] + 1)
        await asyncio.sleep(0.05)
        at_work.append(at_work[-1] - 1)

    for name in NAMES:
        stage.host(name).at_work = work
    stage.start(*NAMES)
    await all_in_force(api)
    await until(lambda: holders(api) == [])
    assert max(at_work) == 1
    for host in stage.hosts.values():
        assert host.touched == ["install", "switch-on"]
        assert (host.root / "opt/partage" / V1 / "bin/partage").exists()
        assert len(list((host.root / "etc/partage/keys.d").iterdir())) == 1


async def test_nobody_is_touched_after_a_failure_and_a_mended_node_lets_them_go_on(
    api: FakeApi, stage: RolloutStage
) -> None:
    stage.host("n00").trouble = "kubelet refuses its configuration"
    await come_to(api, stage, "failed")
    stage.start("n01", "n02")
    await until(lambda: told(api, "n01")[2].startswith("stopped: n00"))
    assert told(api, "n00") == (
        V1,
        "failed",
        "`partage node switch-on`: partage: kubelet refuses its configuration (exit code 1)",
    )
    assert stage.touched == ["n00"]
    stage.host("n00").trouble = ""
    api.objects.patch(node_path("n00"), {"metadata": {"annotations": {INSTALLED: None}}})
    await all_in_force(api)


async def test_where_the_labelled_canary_fails_no_other_node_is_touched(api: FakeApi, stage: RolloutStage) -> None:
    api.objects.patch(node_path("n02"), {"metadata": {"labels": {CANARY: "yes"}}})
    stage.host("n02").trouble = "kubelet refuses its configuration"
    stage.start(*NAMES)
    await until(lambda: all(told(api, name)[2].startswith("stopped: n02") for name in ("n00", "n01")))
    assert stage.touched == ["n02"]


async def test_a_failure_that_is_told_between_look_and_turn_is_noticed_in_time(
    api: FakeApi, stage: RolloutStage
) -> None:
    class Late(Mortal):
        async def create(self, path: str, body: object, type_: type[T], *, within_s: float = 0) -> T:
            failed = telling(V1, DesiredState.ON, "failed", "no room")
            api.objects.patch(node_path("n00"), {"metadata": {"annotations": {INSTALLED: failed.text()}}})
            return await super().create(path, body, type_, within_s=within_s)

    stage.server_of = lambda _name: Late(access_to(api.url))
    stage.start("n01")
    await until(lambda: told(api, "n01")[2] == "stopped: n00 failed: no room")
    assert len(api.objects.select(leases_path("partage-system"), {})) == 1
    assert holders(api) == []
    assert stage.touched == []


async def test_a_person_mends_a_host_by_hand_and_it_goes_on(api: FakeApi, stage: RolloutStage) -> None:
    stage.set(look_every_s=0.05)
    stage.host("n00").trouble = "no"
    await come_to(api, stage, "failed")
    stage.start("n01", "n02")
    stage.host("n00").in_force = True
    await all_in_force(api)
    assert stage.host("n00").touched == ["install", "switch-on"], "nothing was tried again"


async def test_another_version_begins_again_and_upgrades(api: FakeApi, stage: RolloutStage) -> None:
    stage.start(*NAMES)
    await all_in_force(api)
    stage.host("n01").trouble = "the new broker does not start"
    stage.kill(*NAMES)
    stage.start("n00", version=V2)
    await until(lambda: states(api, V2)[0] == "in-force")
    stage.start("n01", version=V2)
    await until(lambda: states(api, V2)[1] == "failed")
    assert stage.host("n00").touched == ["install", "switch-on", "upgrade"]
    assert stage.host("n01").version == V1


async def test_a_version_that_is_replaced_in_the_middle_is_left_and_the_newer_one_goes_on(
    api: FakeApi, stage: RolloutStage
) -> None:
    stage.start(*NAMES)
    await until(lambda: "in-force" in states(api))
    stage.kill(*NAMES)
    stage.start(*NAMES, version=V2)
    await all_in_force(api, V2)
    assert {host.version for host in stage.hosts.values()} == {V2}


async def test_the_label_off_takes_everything_out_and_waits_for_nobody_who_is_at_work(
    api: FakeApi, stage: RolloutStage
) -> None:
    await come_to(api, stage, "in-force")
    stage.host("n01").at_work = asyncio.Event().wait
    stage.start("n01")
    await until(lambda: states(api)[1] == "working")
    api.objects.patch(node_path("n00"), {"metadata": {"labels": {INSTALL: "off"}}})
    await until(lambda: states(api)[0] == "off")
    assert holders(api) == ["n01"]
    host = stage.host("n00")
    assert host.touched == ["install", "switch-on", "uninstall"]
    assert not (host.root / "etc/partage").exists()


async def test_a_label_that_is_taken_away_undoes_nothing(api: FakeApi, stage: RolloutStage) -> None:
    await come_to(api, stage, "in-force")
    api.objects.patch(node_path("n00"), {"metadata": {"labels": {INSTALL: None}}})
    stage.start("n01")
    await until(lambda: states(api)[1] == "in-force")
    assert stage.host("n00").in_force
    assert stage.host("n00").touched == ["install", "switch-on"]


async def test_one_that_is_told_to_end_just_as_its_work_is_told_does_end(
    api: FakeApi, stage: RolloutStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[asyncio.Task[None]] = []

    async def told_to_end_then(node: ReportedNode, told: InstallReport) -> None:
        await tell(node, told)
        if told.state == "in-force" and (task := asyncio.current_task()) is not None:
            ended.append(task)
            asyncio.get_running_loop().call_soon(task.cancel)

    tell = ReportedNode.tell
    monkeypatch.setattr(ReportedNode, "tell", told_to_end_then)
    stage.set(look_every_s=600.0)
    stage.start("n00")
    await until(lambda: bool(ended) and ended[0].done())
    assert len(ended) == 1


async def test_without_a_key_a_node_waits_and_says_so(api: FakeApi, stage: RolloutStage) -> None:
    (key,) = stage.settings.keys.iterdir()
    content = key.read_bytes()
    key.unlink()
    stage.set(look_every_s=600.0)
    stage.start("n00")
    await until(lambda: "see the ConfigMap partage-keys" in told(api, "n00")[2])
    assert stage.host("n00").touched == []
    key.write_bytes(content)
    await until(lambda: states(api)[0] == "in-force")


async def test_a_host_without_room_fails_before_its_turn_and_is_not_touched(
    api: FakeApi, stage: RolloutStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partage_cli.installation.tree.SPARE_BYTES", 1 << 60)
    await come_to(api, stage, "failed")
    assert "MiB must be free at" in told(api, "n00")[2]
    assert stage.touched == []


async def test_a_host_that_falls_out_of_force_stops_the_others(api: FakeApi, stage: RolloutStage) -> None:
    stage.set(look_every_s=0.05)
    await come_to(api, stage, "in-force")
    stage.host("n00").in_force = False
    await until(lambda: states(api)[0] == "failed")
    assert told(api, "n00")[2] == "it was in force and is no more: kubelet speaks to containerd"
    assert stage.host("n00").touched == ["install", "switch-on"]


async def test_a_key_that_is_taken_from_a_host_comes_back_though_the_host_fell_out_of_force_by_it(
    api: FakeApi, stage: RolloutStage
) -> None:
    stage.set(look_every_s=0.05, lapse_s=600)
    await come_to(api, stage, "in-force")
    (key,) = (stage.host("n00").root / "etc/partage/keys.d").iterdir()
    stage.host("n00").in_force = False
    key.unlink()
    await until(key.exists)
    await until(lambda: told(api, "n00")[2].endswith(f"wrote /etc/partage/keys.d/{key.name}, which was missing"))
    assert states(api)[0] == "in-force", "it has its time to be so again"


async def test_files_of_the_installation_are_put_back_and_kubelet_is_left_alone(
    api: FakeApi, stage: RolloutStage
) -> None:
    stage.set(look_every_s=0.05)
    await come_to(api, stage, "in-force")
    host, unit = stage.host("n00"), "/etc/systemd/system/partage-crishim.socket"
    host.altered = (unit,)
    await until(lambda: told(api, "n00")[2].endswith(f"put back {unit}"))
    assert list(host.altered) == []
    assert host.touched == ["install", "switch-on", "install"]
    assert states(api)[0] == "in-force"


async def test_files_that_somebody_else_keeps_writing_are_not_put_back_in_every_round(
    api: FakeApi, stage: RolloutStage
) -> None:
    stage.set(look_every_s=0.01)
    await come_to(api, stage, "in-force")
    host = stage.host("n00")
    host.altered, host.stays_altered = ("/opt/partage/current",), True
    await until(lambda: host.touched == ["install", "switch-on", "install"])
    looks = host.looks
    await until(lambda: host.looks > looks + 3)
    assert host.touched == ["install", "switch-on", "install"]
    host.altered = ("/etc/systemd/system/partage-broker.service",)
    await until(lambda: host.touched[3:] == ["install"])


async def test_a_host_whose_programs_are_gone_gets_them_again(api: FakeApi, stage: RolloutStage) -> None:
    stage.set(look_every_s=0.05, lapse_s=600)
    await come_to(api, stage, "in-force")
    host = stage.host("n00")
    tree = host.root / "opt/partage" / V1
    shutil.rmtree(tree)
    await until(lambda: told(api, "n00")[2].endswith(f"put back /opt/partage/{V1}"))
    assert (tree / "bin/partage").exists()
    assert states(api)[0] == "in-force"


async def test_a_host_that_says_so_a_little_later_has_not_failed(
    api: FakeApi, stage: RolloutStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partage_cli.rollout.installer.installer._SETTLE_LOOKS_S", 0.01)
    stage.set(lapse_s=60)
    stage.host("n00").late_looks = 5
    stage.start("n00")
    await until(lambda: states(api)[0] in ("in-force", "failed"))
    assert states(api)[0] == "in-force"


async def test_a_host_that_never_says_so_has_failed(api: FakeApi, stage: RolloutStage) -> None:
    stage.host("n00").late_looks = 1 << 30
    await come_to(api, stage, "failed")
    assert told(api, "n00")[2].startswith("every command was done, and the host is not as it should be: kubelet speaks")


@pytest.mark.slow
async def test_an_api_server_that_refuses_for_a_while_stops_nothing_for_good(api: FakeApi, stage: RolloutStage) -> None:
    for method in ("PATCH", "PUT", "POST", "GET"):
        api.expect(Refuse(503), method=method)
    stage.start(*NAMES)
    await all_in_force(api)


@pytest.mark.slow
async def test_a_node_that_died_at_work_stops_the_others_until_it_lives_again(
    api: FakeApi, stage: RolloutStage
) -> None:
    stage.set(lease_s=0.2, look_every_s=0.1)
    await hung_at_work(api, stage)
    stage.kill("n00")
    await until(lambda: "went silent while it worked" in told(api, "n01")[2])
    assert stage.touched == ["n00"]
    stage.host("n00").at_work = None
    stage.start("n00")
    await all_in_force(api)


@pytest.mark.slow
async def test_a_node_that_is_gone_with_the_lease_keeps_nobody(api: FakeApi, stage: RolloutStage) -> None:
    stage.set(lease_s=1.0, look_every_s=0.1)
    await hung_at_work(api, stage)
    stage.kill("n00")
    api.objects.delete(node_path("n00"), {})
    await until(lambda: [told(api, name)[1] for name in NAMES[1:]] == ["in-force", "in-force"])


_POINTS: Final = 10
"""Each of the five writes has a point before and one after it."""


@pytest.mark.parametrize("trouble", ["", "no"], ids=["good", "broken"])
@pytest.mark.parametrize("point", range(_POINTS + 1))
async def test_an_installer_that_dies_before_or_after_any_write_is_followed_by_one_that_ends_the_work(
    api: FakeApi, stage: RolloutStage, point: int, trouble: str
) -> None:
    calls = 0
    died = asyncio.Event()

    def dies() -> bool:
        nonlocal calls
        calls += 1
        if calls == point + 1:
            died.set()
        return died.is_set()

    stage.host("n00").trouble = trouble
    ends = "failed" if trouble else "in-force"
    stage.server_of = lambda _name: Mortal(access_to(api.url), dies=dies)
    stage.start("n00")
    if point < _POINTS:
        await died.wait()  # the last write takes effect before its installer receives the answer
    else:
        await until(lambda: states(api)[0] == ends and holders(api) == [])
    stage.kill("n00")
    stage.server_of = lambda _name: Mortal(access_to(api.url))
    await come_to(api, stage, ends)
    stage.start(*NAMES[1:])
    if trouble:
        await until(lambda: all(told(api, name)[2].startswith("stopped: n00") for name in NAMES[1:]))
    else:
        await all_in_force(api)
    await until(lambda: holders(api) == [])
    assert stage.touched == (["n00"] if trouble else list(NAMES))
    assert died.is_set() == (point < _POINTS)
