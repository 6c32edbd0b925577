"""What a pod needs next, whatever happened to it: exits, power failures, new managers, people's words."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from partage_cli.machine.manager import life
from partage_cli.machine.pods.record import Record, Restart
from unit.machine.manager.stage import container, pod


@dataclass
class World:
    """A pod on a runtime that does at once what it is told; nothing waits."""

    record: Record
    will: life.Will = "start"
    ready: bool = False
    containers: dict[str, life.Seen] = field(default_factory=dict[str, life.Seen])
    begins: list[str] = field(default_factory=list[str])
    """Each app container that began since a person's last start."""
    sandboxes: int = 0
    is_removed: bool = False

    @property
    def facts(self) -> life.Facts:
        return life.Facts(record=self.record, ready=self.ready, containers=self.containers, will=self.will, now=0.0)

    def settle(self) -> None:
        """Does all that is to be done."""
        for _ in range(100):
            step = life.next_step(self.facts)
            if isinstance(step, life.Rest) or self.is_removed:
                return
            self.do(step)
        raise AssertionError("it never rests")

    def do(self, step: life.Step) -> None:
        match step:
            case life.Place(past):
                assert not self.ready
                assert not self.live
                self.record = replace(self.record, past=past)
                self.ready, self.containers, self.sandboxes = True, {}, self.sandboxes + 1
                self.will = "run" if self.will == "start" else self.will
            case life.Create(name, attempt):
                before = self.containers.get(name)
                assert self.ready
                assert before is None or before.has_ended, "two containers of one name"
                assert before is None or attempt > before.attempt
                self.containers[name] = life.Seen(attempt, "created")
            case life.Begin(name):
                assert self.ready
                self.containers[name] = replace(self.containers[name], state="running")
                if name in life.apps_of(self.record):
                    self.begins.append(name)
            case life.Halt():
                self.end_all("exited", 143)
                self.ready = False
            case life.Remove():
                self.end_all("exited", 143)
                self.ready, self.is_removed = False, True
            case life.Rest():
                raise AssertionError("nothing to be done")

    def happens(self, happening: tuple[object, ...]) -> None:
        match happening:
            case ("exit", int(place), int(code)):
                self.exit(place, code)
            case ("power",):
                self.power_fails()
            case ("sandbox",):
                self.ready = False
            case ("manager",):
                self.manager_dies()
            case ("stop",) if not life.is_at_rest(self.facts):
                self.will = "stop"
            case ("start",) if life.is_at_rest(self.facts):
                self.will = "start"
                self.begins.clear()
            case _:
                pass

    @property
    def live(self) -> list[str]:
        return [name for name, seen in self.containers.items() if seen.state == "running"]

    def end_all(self, state: str, code: int) -> None:
        for name in self.live:
            self.containers[name] = replace(self.containers[name], state=state, exit_code=code)

    def exit(self, place: int, code: int) -> None:
        if self.live:
            name = self.live[place % len(self.live)]
            self.containers[name] = replace(self.containers[name], state="exited", exit_code=code)

    def power_fails(self) -> None:
        self.end_all("lost", 255)
        self.ready = False
        self.manager_dies()

    def manager_dies(self) -> None:
        """The next one knows only what the runtime has."""
        self.will = "run"
        self.will = life.will_of(self.facts)


def world(restart: Restart, most: int = 0, *, inits: int = 0, apps: int = 1, remove: bool = False) -> World:
    made = pod(
        "a",
        *(container(f"app{number}") for number in range(apps)),
        inits=tuple(container(f"init{number}") for number in range(inits)),
    )
    return World(Record(pod=made, restart=restart, most_restarts=most, remove=remove, created_ns=1))


WORLDS = st.builds(
    world,
    st.sampled_from(["no", "on-failure", "always", "unless-stopped"]),
    st.integers(0, 3),
    inits=st.integers(0, 2),
    apps=st.integers(1, 2),
    remove=st.booleans(),
)
HAPPENINGS = st.lists(
    st.one_of(
        st.tuples(st.just("exit"), st.integers(0, 2), st.sampled_from([0, 1, 137])),
        st.sampled_from([("power",), ("sandbox",), ("manager",), ("stop",), ("start",)]),
    ),
    max_size=25,
)


@given(WORLDS, HAPPENINGS)
def test_no_history_starts_a_container_too_often_or_twice_at_once(
    found: World, history: list[tuple[object, ...]]
) -> None:
    most = {"no": 0, "on-failure": found.record.most_restarts or None}.get(found.record.restart)
    found.settle()
    for happening in history:
        if found.is_removed:
            return
        was_stopped, begins = found.will == "stop", len(found.begins)
        found.happens(happening)
        found.settle()
        if was_stopped and happening != ("start",):
            assert len(found.begins) == begins, "what a person stopped was started"
        if most is not None:
            assert all(found.begins.count(name) <= most + 1 for name in found.begins), "more often than told"


@given(WORLDS, st.lists(st.sampled_from(["place", "power", "manager", "exit"]), max_size=12), st.integers(0, 6))
def test_a_manager_may_die_after_any_step(found: World, history: list[str], steps: int) -> None:
    for happening in history:
        for _ in range(steps):
            step = life.next_step(found.facts)
            if isinstance(step, life.Rest) or found.is_removed:
                break
            found.do(step)
        if found.is_removed or not found.sandboxes:
            return
        if happening == "power":
            found.power_fails()
        elif happening == "exit":
            found.exit(0, 1)
        else:
            found.manager_dies()
    found.settle()
    assert found.is_removed or life.is_at_rest(found.facts) or found.live


def test_after_a_power_failure_only_pods_with_a_policy_run_again() -> None:
    for restart, runs in (("no", False), ("on-failure", True), ("always", True), ("unless-stopped", True)):
        found = world(restart)  # type: ignore[arg-type]
        found.settle()
        found.power_fails()
        found.settle()
        assert bool(found.live) == runs, restart
        assert found.sandboxes == 1 + runs


def test_who_has_done_its_work_is_not_started_again_with_those_who_have_not() -> None:
    found = world("on-failure", apps=2)
    found.settle()
    found.exit(0, 0)
    found.power_fails()
    found.settle()
    assert (found.begins, found.live) == (["app0", "app1", "app1"], ["app1"])


def test_phases_are_what_people_see() -> None:
    found = world("always", inits=1)
    phases = [life.phase_of(found.facts)]
    found.settle()
    phases.append(life.phase_of(found.facts))
    found.exit(0, 0)
    found.settle()
    phases.append(life.phase_of(found.facts))
    found.exit(0, 1)
    phases.append(life.phase_of(found.facts))
    found.settle()
    found.will = "stop"
    found.settle()
    phases.append(life.phase_of(found.facts))
    assert phases == ["starting", "starting", "running", "restarting", "stopped"]
