"""Part of a card goes only to containers in which limits hold; whole cards, whose limits protect nobody, to any."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from partage_crishim.deciding.confining import Confinement
from partage_plugins.vocabulary import Kind
from unit.crishim.deciding.allocations import GIB, WHOLE, allocation, grant, inventory, signed
from unit.crishim.deciding.requests import NODE_PIDS, Create
from unit.crishim.deciding.stage import Crishim, Stage, enforced

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
def test_part_of_a_card_is_refused(how: str, crishim: Crishim) -> None:
    changes, what = UNCONFINED[how]
    assert crishim.refusal(replace(PART, **changes)) == sentence(what)


@pytest.mark.parametrize("handler", ["kata", "kata-qemu", "aws-firecracker", "runsc"])
def test_runtimes_with_a_kernel_of_their_own_are_refused_part_of_a_card(handler: str, stage: Stage) -> None:
    stage.runtime.handlers["sandbox-1"] = handler
    assert stage.crishim().refusal(PART) == sentence(f"a container of runtime handler {handler}")
    stage.crishim().rewrite(ALL)


@pytest.mark.parametrize("handler", ["", "runc", "nvidia", "crun"])
def test_others_are_not(handler: str, stage: Stage) -> None:
    stage.runtime.handlers["sandbox-1"] = handler
    stage.crishim().rewrite(PART)


@pytest.mark.parametrize("how", UNCONFINED)
def test_whole_cards_are_given(how: str, crishim: Crishim) -> None:
    crishim.rewrite(replace(ALL, **UNCONFINED[how][0]))


@pytest.mark.parametrize("part", [grant(share=999, memory=80 * GIB), grant(share=1000, memory=80 * GIB - 1)])
def test_a_little_less_than_a_card_is_part_of_it(part: dict[str, Any], crishim: Crishim) -> None:
    crishim.refusal(Create(annotations=signed(allocation(part)), privileged=True))
    crishim.refusal(Create(annotations=signed(allocation(WHOLE, part)), privileged=True))


@pytest.mark.parametrize("how", UNCONFINED)
def test_the_operator_may_allow_it(how: str, stage: Stage) -> None:
    stage.crishim(confinement=Confinement(allow_unconfined=True)).rewrite(replace(PART, **UNCONFINED[how][0]))


def test_ordinary_capabilities_are_no_hindrance(crishim: Crishim) -> None:
    crishim.rewrite(replace(PART, capabilities=["NET_ADMIN", "CAP_SYS_PTRACE"]))


def test_other_kinds_are_their_plugins_to_refuse(stage: Stage) -> None:
    stage.write_inventory(inventory(fpga={"boards": ["fpga0"]}))
    fpga = allocation() | {"containers": {"main": {"fpga": [{"board": "fpga0"}]}}}
    stage.crishim().rewrite(Create(annotations=signed(fpga), privileged=True))


class TestPromises:
    """What a grant promises to others is enforced, or the container does not start."""

    def test_a_promise_that_nobody_enforces_is_refused(self, stage: Stage, crishim: Crishim) -> None:
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
