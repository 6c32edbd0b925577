"""Part of a card goes only to containers in which limits hold; whole cards, whose limits protect nothing, to any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from partage_base.cri import RuntimeConfig
from partage_crishim.rules.confinement import Confinement
from partage_crishim.rules.guard import GuardPolicy
from partage_plugins.api import Kind
from unit.crishim.rules.allocations import GIB, OTHER_CARD, WHOLE, allocation, grant, inventory, signed
from unit.crishim.rules.requests import NODE_PIDS, POD_PIDS, TARGET_PIDS, Create
from unit.crishim.rules.stage import Crishim, Stage, enforced

PART = Create(annotations=signed(allocation()))
ALL = Create(annotations=signed(allocation(WHOLE)))
UNCONFINED: dict[str, tuple[dict[str, Any], str]] = {
    "privileged": ({"privileged": True}, "a privileged container"),
    "a capability": ({"capabilities": ["NET_ADMIN", "SYS_ADMIN"]}, "a container with CAP_SYS_ADMIN"),
    "a capability, long": ({"capabilities": ["CAP_SYS_ADMIN"]}, "a container with CAP_SYS_ADMIN"),
    "a capability, small": ({"capabilities": ["cap_sys_admin"]}, "a container with CAP_SYS_ADMIN"),
    "all capabilities": ({"capabilities": ["ALL"]}, "a container with CAP_SYS_ADMIN"),
    "an ambient capability": ({"ambient": ["SYS_ADMIN"]}, "a container with CAP_SYS_ADMIN"),
    "host pids": ({"pids": NODE_PIDS}, "a container in the node's process namespace (hostPID)"),
    "a sandbox with host pids": ({"sandbox_pids": NODE_PIDS}, "a container in the node's process namespace (hostPID)"),
}


def sentence(what: str) -> str:
    return (
        f"partage: {what} cannot be given part of a card, since limits do not hold in it; ask for whole cards, or "
        "change the container"
    )


@pytest.mark.parametrize("how", UNCONFINED)
def test_part_of_a_card_is_refused_and_whole_ones_or_what_the_operator_allows_is_given(how: str, stage: Stage) -> None:
    changes, what = UNCONFINED[how]
    assert stage.crishim().refusal(replace(PART, **changes)) == sentence(what)
    stage.crishim().rewrite(replace(ALL, **changes))
    stage.crishim(confinement=Confinement(allow_unconfined=True)).rewrite(replace(PART, **changes))


@pytest.mark.parametrize("handler", ["kata", "kata-qemu", "aws-firecracker", "runsc"])
def test_runtimes_with_a_kernel_of_their_own_are_refused_part_of_a_card(handler: str, stage: Stage) -> None:
    stage.runtime.handlers["sandbox-1"] = handler
    assert stage.crishim().refusal(PART) == sentence(f"a container of runtime handler {handler}")
    stage.crishim().rewrite(ALL)


@pytest.mark.parametrize("handler", ["sandboxed", "krun", "nvidia-of-mine", "Runc"])
def test_runtimes_that_are_not_known_to_run_containers_are_refused_part_of_a_card(handler: str, stage: Stage) -> None:
    stage.runtime.handlers["sandbox-1"] = handler
    what = f"a container of runtime handler {handler}, which crishim's container_handlers do not name,"
    assert stage.crishim().refusal(PART) == sentence(what)
    stage.crishim().rewrite(ALL)
    stage.crishim(confinement=Confinement(container_handlers=(handler[:4] + "*",))).rewrite(PART)


def test_a_runtime_that_is_known_to_run_none_is_refused_even_if_it_is_named(stage: Stage) -> None:
    stage.runtime.handlers["sandbox-1"] = "kata"
    policy = Confinement(container_handlers=("*",))
    assert stage.crishim(confinement=policy).refusal(PART) == sentence("a container of runtime handler kata")
    stage.crishim(confinement=Confinement(container_handlers=("*",), vm_handlers=())).rewrite(PART)


def test_a_default_handler_that_makes_virtual_machines_is_known_by_its_name(stage: Stage) -> None:
    stage.runtime.setup = RuntimeConfig(default_handler="kata-qemu", programs={"kata-qemu": "io.containerd.kata.v2"})
    assert stage.crishim().refusal(PART) == sentence("a container of runtime handler kata-qemu")


@pytest.mark.parametrize("handler", ["", "runc", "nvidia", "crun"])
def test_containers_of_the_nodes_own_kernel_are_not(handler: str, stage: Stage) -> None:
    stage.runtime.handlers["sandbox-1"] = handler
    stage.crishim().rewrite(PART)


@pytest.mark.parametrize("part", [grant(share=999, memory=80 * GIB), grant(share=1000, memory=80 * GIB - 1)])
def test_a_little_less_than_a_card_is_part_of_it(part: dict[str, Any], crishim: Crishim) -> None:
    crishim.refusal(Create(annotations=signed(allocation(part)), privileged=True))
    crishim.refusal(Create(annotations=signed(allocation(WHOLE, part)), privileged=True))


class TestSharedProcesses:
    """A container that can enter one with part of a card does not run beside it, in either order of creation."""

    PART = replace(PART, pids=POD_PIDS)
    SIDE = Create(container="side", pids=POD_PIDS, annotations=PART.annotations)
    MIGHTY: Mapping[str, dict[str, Any]] = {
        "privileged": {"privileged": True},
        "SYS_ADMIN": {"capabilities": ["SYS_ADMIN"]},
        "SYS_PTRACE": {"capabilities": ["SYS_PTRACE"]},
    }
    FIRST = sentence("a container that shares its processes with 'side', which can enter it,")
    SECOND = (
        "partage: a container that is privileged or has CAP_SYS_ADMIN or CAP_SYS_PTRACE cannot share processes with "
        "one that has part of a card, since limits would not hold there; change it, or do not share them"
    )

    @pytest.mark.parametrize("how", MIGHTY)
    def test_part_of_a_card_beside_one_that_stands_already_is_refused(self, how: str, stage: Stage) -> None:
        side = replace(self.SIDE, **self.MIGHTY[how])
        stage.create(side.bytes(), side)
        assert stage.crishim().refusal(self.PART) == self.FIRST
        stage.crishim().rewrite(replace(self.PART, annotations=ALL.annotations))

    @pytest.mark.parametrize("how", MIGHTY)
    def test_one_that_comes_later_is_refused(self, how: str, stage: Stage, crishim: Crishim) -> None:
        crishim.rewrite(self.PART)
        side = replace(self.SIDE, **self.MIGHTY[how])
        assert crishim.refusal(side) == stage.crishim().refusal(side) == self.SECOND
        mighty = replace(side, annotations=signed(allocation(grant(OTHER_CARD, 1000, 80 * GIB), container="side")))
        assert crishim.refusal(mighty) == self.SECOND

    def test_in_trusted_namespaces_and_where_the_guard_is_off_as_well(self, stage: Stage) -> None:
        for guard in (GuardPolicy(mode="off"), GuardPolicy(trusted=frozenset({"default"}))):
            crishim = stage.crishim(guard=guard)
            crishim.rewrite(self.PART)
            assert crishim.refusal(replace(self.SIDE, privileged=True)) == self.SECOND

    def test_without_the_pods_allocation_it_is_refused_as_well(self, crishim: Crishim) -> None:
        crishim.rewrite(self.PART)
        assert crishim.refusal(replace(self.SIDE, privileged=True, annotations={})) == self.SECOND

    def test_one_that_is_being_created_counts(self, crishim: Crishim) -> None:
        crishim.held_back(self.PART)
        assert crishim.refusal(replace(self.SIDE, privileged=True)) == self.SECOND

    def test_a_debugger_of_its_processes_is_refused_and_one_of_anothers_is_not(self, crishim: Crishim) -> None:
        alone = replace(self.PART, pids=1)
        seen = crishim.rewrite(alone)
        id_ = f"c-{alone.uid}-main-0"
        assert seen.annotations
        debugger = Create(container="debugger", pids=TARGET_PIDS, target=id_, capabilities=["SYS_PTRACE"])
        assert crishim.refusal(debugger) == self.SECOND
        crishim.passes(replace(debugger, target="another"))
        crishim.passes(replace(debugger, capabilities=["NET_ADMIN"]))

    def test_those_who_see_other_processes_are_left_alone(self, stage: Stage, crishim: Crishim) -> None:
        crishim.rewrite(replace(self.PART, pids=1))
        for pids in (1, NODE_PIDS):
            crishim.passes(replace(self.SIDE, pids=pids, privileged=True))
        crishim.passes(replace(self.SIDE, uid="another", annotations={}, privileged=True))
        crishim.passes(replace(self.SIDE, capabilities=["NET_ADMIN"]))
        stage.runtime.listed.clear()
        crishim.passes(replace(self.SIDE, privileged=True))

    def test_beside_those_that_cannot_enter_or_have_ended_part_of_a_card_is_given(self, stage: Stage) -> None:
        weak, ended, elsewhere = (
            self.SIDE,
            replace(self.SIDE, container="init", privileged=True),
            replace(self.SIDE, sandbox="another", privileged=True, container="x"),
        )
        stage.create(weak.bytes(), weak)
        stage.create(ended.bytes(), ended, exited=True)
        stage.create(elsewhere.bytes(), elsewhere)
        stage.crishim().rewrite(self.PART)

    def test_where_the_runtime_does_not_say_what_they_may_do_it_is_refused(self, stage: Stage) -> None:
        stage.runtime.put("c", {}, pod=self.PART.uid, container="side", sandbox=self.PART.sandbox)
        assert "does not say what the other containers of this pod may do" in stage.crishim().refusal(self.PART)

    def test_the_operator_may_allow_it(self, stage: Stage) -> None:
        crishim = stage.crishim(confinement=Confinement(allow_unconfined=True))
        mighty = replace(self.SIDE, privileged=True)
        crishim.rewrite(self.PART)
        crishim.passes(mighty)
        stage.create(mighty.bytes(), mighty)
        crishim.rewrite(replace(self.PART, attempt=1))


def test_ordinary_capabilities_are_no_hindrance(crishim: Crishim) -> None:
    crishim.rewrite(replace(PART, capabilities=["NET_ADMIN", "CAP_SYS_PTRACE"]))


def test_other_kinds_are_their_plugins_to_refuse(stage: Stage) -> None:
    stage.write_inventory(inventory(fpga={"boards": ["fpga0"]}))
    fpga = allocation() | {"containers": {"main": {"fpga": [{"board": "fpga0"}]}}}
    stage.crishim().rewrite(Create(annotations=signed(fpga), privileged=True))


class TestPromises:
    """What a grant guarantees to others is enforced, or the container does not start."""

    def test_a_promise_that_no_plugin_enforces_is_refused(self, stage: Stage, crishim: Crishim) -> None:
        stage.fake.answer = replace_unenforced()
        assert crishim.refusal(PART) == (
            "partage: no plugin on this node enforces memory, share of gpu; install the isolation plugin on the node, "
            "or set enforce = advisory to start containers without limits in force"
        )

    def test_unless_promises_are_advisory(self, stage: Stage) -> None:
        stage.fake.answer = replace_unenforced()
        stage.crishim(enforcement="advisory").rewrite(PART)


def replace_unenforced() -> Any:
    return type(enforced())(adjustment=enforced().adjustment, unenforced={Kind("gpu"): ("memory", "share")})
