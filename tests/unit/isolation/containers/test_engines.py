"""Containers of Docker and Podman are known from the hook at their start until their first process has ended."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_base.peers import Peer, peer_named
from partage_isolation.audit.listing import RuntimeContainer
from partage_isolation.audit.runtime import NoRuntime, Runtime
from partage_isolation.errors import SpecRefused
from partage_isolation.wire import engines as engines_module
from partage_isolation.wire import served as served_module
from partage_isolation.wire.engines import Engines, killed, living
from partage_isolation.wire.messages import Enter, Prepare
from partage_plugins.api.claims import ClaimUid, claim_key
from partage_plugins.api.gpu import GpuGrant
from partage_plugins.api.keys import CONTAINER
from partage_plugins.api.names import ContainerKey, ContainerName
from support.broker import CARD, pod
from support.fake_runtime import FakeRuntime
from unit.isolation.containers.site import Site

UID = ClaimUid(pod().uid)
KEY = claim_key(UID)
ONE, OTHER = "1a" * 32, "2b" * 32
CRI = RuntimeContainer("c" * 64, ContainerKey("c" * 32), 70, running=True)


class Machine:
    """Stands for cgroups and the node's runtime; the processes are real."""

    def __init__(self) -> None:
        self.groups: dict[int, frozenset[str]] = {}
        self.runtime = FakeRuntime()
        self.runtime.put(CRI.id, {CONTAINER: f'{{"v":1,"key":"{CRI.key}","gen":1,"grants":{{"gpu":[]}}}}'})
        self.runtime.pids[CRI.id] = 70
        self.processes: list[subprocess.Popen[bytes]] = []

    def container(self, id_: str, *, group: str | None = None) -> Enter:
        """Start a container's first process; return what its hook requests."""
        process = subprocess.Popen(("sleep", "infinity"))
        self.processes.append(process)
        self.groups[process.pid] = frozenset(["machine.slice", f"libpod-{id_}.scope" if group is None else group])
        return Enter(key=KEY, container=id_, pid=process.pid)

    def end(self, entered: Enter) -> None:
        process = next(each for each in self.processes if each.pid == entered.pid)
        process.kill()
        process.wait()

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine()
    for module in (engines_module, served_module):
        monkeypatch.setattr(module, "cgroup_components", lambda pid: made.groups.get(pid, frozenset()))
    yield made
    made.close()


class Broker(Site):
    """A site with the engines' containers."""

    def __init__(self, root: Path, machine: Machine, runtime: NoRuntime | None = None) -> None:
        super().__init__(root)
        self.engines = Engines(self.containers, self.registry, runtime or Runtime(machine.runtime.client))

    def __exit__(self, *_: object) -> None:
        self.engines.close()
        super().__exit__()

    async def listed(self) -> set[str]:
        listing = await self.engines.containers()
        assert listing is not None
        return set(listing) - {CRI.id}

    async def is_over(self) -> bool:
        listing = await self.engines.containers()
        assert listing is not None
        return self.containers.end(KEY, listing.keys_in_use)

    def may_use(self, pid: int) -> bool:
        return self.registry.may_be(self.registry.served[KEY], pid)

    @property
    def told(self) -> tuple[str, ...]:
        (facts,) = self.containers.facts()
        return facts.engine_containers


@pytest.fixture
def broker(tmp_path: Path, machine: Machine) -> Iterator[Broker]:
    with Broker(tmp_path, machine) as broker:
        yield broker


def granted(*, ends_with_last: bool = True, by_hook: bool = True, of: str | None = None) -> Prepare:
    grant = GpuGrant(card=CARD, share_milli=300, limit_milli=700, memory_bytes=1 << 30)
    return Prepare(
        key=KEY,
        pod=pod(),
        container=ContainerName("claim"),
        gen=1,
        grants=(grant,),
        is_claim=True,
        by_hook=by_hook,
        ends_with_last=ends_with_last,
        engine_container=of,
    )


async def test_one_that_entered_is_listed_beside_the_runtime_s_until_it_has_ended(
    broker: Broker, machine: Machine
) -> None:
    assert broker.containers.prepare(granted()).by_hook
    entered = machine.container(ONE)
    broker.engines.enter(entered)
    listing = await broker.engines.containers()
    assert listing is not None
    assert dict(listing) == {
        CRI.id: CRI,
        ONE: RuntimeContainer(ONE, KEY, entered.pid, running=True, claim=UID),
    }
    machine.end(entered)
    assert await broker.listed() == set()
    assert broker.told == ()


async def test_nobody_may_use_a_grant_before_a_container_entered_it(broker: Broker, machine: Machine) -> None:
    broker.containers.prepare(granted())
    stranger = machine.container(ONE)
    assert not broker.may_use(stranger.pid)
    assert not broker.may_use(os.getpid())


async def test_who_has_the_socket_and_did_not_enter_may_use_nothing(broker: Broker, machine: Machine) -> None:
    broker.containers.prepare(granted())
    mine, thief = machine.container(ONE), machine.container(OTHER)
    broker.engines.enter(mine)
    assert [broker.may_use(each.pid) for each in (mine, thief)] == [True, False]
    broker.containers.runtime_has({KEY: {ONE, OTHER}})
    assert not broker.may_use(thief.pid), "whatever a list says"


async def test_a_grant_ends_with_the_last_of_its_containers(broker: Broker, machine: Machine) -> None:
    broker.containers.prepare(granted())
    assert not await broker.is_over(), "nobody has had it yet"
    first, last = machine.container(ONE), machine.container(OTHER)
    for each in (first, last):
        broker.engines.enter(each)
    machine.end(first)
    assert not await broker.is_over()
    machine.end(last)
    assert await broker.is_over()
    assert broker.folders == set()


async def test_one_that_is_kept_ends_once_it_is_released(broker: Broker, machine: Machine) -> None:
    broker.containers.prepare(granted(ends_with_last=False))
    entered = machine.container(ONE)
    broker.engines.enter(entered)
    machine.end(entered)
    assert not await broker.is_over()
    broker.containers.release(KEY)
    assert await broker.is_over()


async def test_one_that_starts_again_enters_again(broker: Broker, machine: Machine) -> None:
    broker.containers.prepare(granted(ends_with_last=False))
    before = machine.container(ONE)
    broker.engines.enter(before)
    machine.end(before)
    broker.engines.enter(machine.container(ONE))
    assert await broker.listed() == {ONE}
    assert broker.told == (ONE,)


async def test_what_has_ended_can_not_be_entered(broker: Broker, machine: Machine) -> None:
    with pytest.raises(SpecRefused, match="has ended; start the container again"):
        broker.engines.enter(machine.container(ONE))


async def test_what_is_of_one_container_no_other_may_enter(tmp_path: Path, machine: Machine) -> None:
    with Broker(tmp_path, machine) as before:
        assert before.containers.prepare(granted(of=ONE)).engine_container == ONE
    with Broker(tmp_path, machine) as after:
        after.containers.rebuild()
        with pytest.raises(SpecRefused, match="has the limits of another container"):
            after.engines.enter(machine.container(OTHER))
        with pytest.raises(SpecRefused, match="is known as a claim of another container"):
            after.containers.prepare(granted(of=OTHER))
        after.engines.enter(machine.container(ONE))
        assert await after.listed() == {ONE}


async def test_on_a_machine_without_a_runtime_the_containers_of_engines_are_all(
    tmp_path: Path, machine: Machine
) -> None:
    with Broker(tmp_path, machine, NoRuntime()) as broker:
        broker.containers.prepare(granted())
        entered = machine.container(ONE)
        broker.engines.enter(entered)
        listing = await broker.engines.containers(with_claims=True)
        assert listing is not None
        assert set(listing) == {ONE}
        machine.end(entered)
        assert await broker.is_over()


async def test_a_claim_of_kubernetes_can_not_be_entered(broker: Broker, machine: Machine) -> None:
    broker.containers.prepare(granted(by_hook=False))
    with pytest.raises(SpecRefused):
        broker.engines.enter(machine.container(ONE))


async def test_one_without_a_control_group_of_its_own_does_not_start(broker: Broker, machine: Machine) -> None:
    broker.containers.prepare(granted())
    with pytest.raises(SpecRefused, match="has no control group of its own"):
        broker.engines.enter(machine.container(ONE, group="user.slice"))
    assert broker.told == ()


async def test_one_whose_process_is_gone_does_not_start(broker: Broker, machine: Machine) -> None:
    broker.containers.prepare(granted())
    entered = machine.container(ONE)
    machine.end(entered)
    with pytest.raises(SpecRefused, match="has no process"):
        broker.engines.enter(entered)


async def test_a_broker_that_starts_again_knows_who_has_entered(tmp_path: Path, machine: Machine) -> None:
    runs, ended = machine.container(ONE), machine.container(OTHER)
    with Broker(tmp_path, machine) as before:
        before.containers.prepare(granted())
        for each in (runs, ended):
            before.engines.enter(each)
    machine.end(ended)
    with Broker(tmp_path, machine) as after:
        assert after.containers.rebuild() == ()
        assert after.may_use(runs.pid), "before anybody was listed"
        assert await after.listed() == {ONE}
        assert not await after.is_over()
        machine.end(runs)
        assert await after.is_over()


async def test_a_process_of_the_same_number_is_not_taken_for_the_container(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered = machine.container(ONE)
    with Broker(tmp_path, machine) as before:
        before.containers.prepare(granted())
        before.engines.enter(entered)
    monkeypatch.setattr(engines_module, "peer_named", lambda pid: Peer(pid, 1, peer_named(pid).pidfd))
    with Broker(tmp_path, machine) as after:
        after.containers.rebuild()
        assert await after.listed() == set()


async def test_a_runtime_that_is_away_keeps_nobody_from_entering_or_leaving(broker: Broker, machine: Machine) -> None:
    broker.containers.prepare(granted())
    machine.runtime.away = True
    entered = machine.container(ONE)
    broker.engines.enter(entered)
    assert await broker.engines.containers() is None
    machine.end(entered)
    assert await broker.engines.containers() is None
    assert broker.told == ()


async def test_a_claim_that_was_entered_since_the_audit_looked_is_not_forgotten(
    broker: Broker, machine: Machine
) -> None:
    broker.containers.prepare(granted())
    broker.engines.enter(machine.container(ONE))
    broker.containers.forget(KEY)
    assert broker.told == (ONE,)


async def test_one_whose_limits_are_not_in_force_is_killed_and_the_runtime_s_is_stopped(
    broker: Broker, machine: Machine
) -> None:
    broker.containers.prepare(granted())
    broker.engines.enter(machine.container(ONE))
    await broker.engines.stop(ONE, grace_s=1)
    await broker.engines.stop(CRI.id, grace_s=1)
    assert machine.processes[0].wait() == -signal.SIGKILL
    assert machine.runtime.stopped == [CRI.id]


async def test_where_no_broker_runs_those_that_do_are_known_and_can_be_killed(tmp_path: Path, machine: Machine) -> None:
    assert living(tmp_path) == ()
    runs, ended = machine.container(ONE), machine.container(OTHER)
    with Broker(tmp_path, machine) as before:
        before.containers.prepare(granted())
        for each in (runs, ended):
            before.engines.enter(each)
    machine.end(ended)
    assert [each.id for each in living(tmp_path)] == [ONE]
    assert [each.id for each in killed(tmp_path)] == [ONE]
    assert machine.processes[0].wait() == -signal.SIGKILL
    assert living(tmp_path) == ()


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_no_descriptor_is_left(tmp_path: Path, machine: Machine) -> None:
    before = descriptors()
    with Broker(tmp_path, machine) as broker:
        broker.containers.prepare(granted(ends_with_last=False))
        for _ in range(3):
            entered = machine.container(ONE)
            broker.engines.enter(entered)
            broker.engines.enter(entered)
            await broker.listed()
            machine.end(entered)
        await broker.listed()
    assert descriptors() == before
