"""Whether limits can hold in a container; one that can undo its confinement gets whole cards or none. Pure.

Privileged containers and those with CAP_SYS_ADMIN can unmount our files. Those in the node's PID namespace can reach
other processes. In a virtual machine the library would not see the node's broker, so a runtime handler counts as
running containers only if it is known to. All of them may have whole cards, whose limits protect no other container, or
what the operator allows.

A container that shares processes with another can undo the other's limits with its own privileges. `is_able_to_enter`
and `may_enter` identify such containers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from partage_base.cri.create_request import CreateRequest
from partage_crishim.rules.errors import NotConfinable
from partage_plugins.api import GPU, GpuGrant, GpuPart, Security
from partage_plugins.api.nvidia import HANDLERS

CONTAINER_HANDLERS: Final = ("runc", "crun")
"""Usual names of runtime handlers that run containers on the node's own kernel, as the default handler does."""
VM_HANDLERS: Final = ("kata*", "*firecracker*", "*cloud-hypervisor*", "runsc*", "gvisor*")
"""Usual names of runtime handlers that run containers on a kernel of their own."""
_UNCONFINED: Final = frozenset(("SYS_ADMIN", "ALL"))
_ENTERING: Final = _UNCONFINED | {"SYS_PTRACE"}


@dataclass(frozen=True, kw_only=True)
class Confinement:
    allow_unconfined: bool = False
    """Start them anyway: their limits then bind only programs that cooperate."""
    container_handlers: tuple[str, ...] = (*CONTAINER_HANDLERS, *HANDLERS)
    """The default handler counts as one of these, unless the runtime reports it as one of `vm_handlers`."""
    vm_handlers: tuple[str, ...] = VM_HANDLERS
    """Not container handlers, even if listed above."""


def is_fractional(cards: Iterable[GpuGrant], part: GpuPart | None) -> bool:
    """Whether other containers depend on the limits of these grants."""
    return any(GPU.promises(grant, part) for grant in cards)


def require_confinable(
    security: Security,
    cards: Iterable[GpuGrant],
    part: GpuPart | None,
    policy: Confinement,
    *,
    default_handler: str | None = None,
) -> None:
    """Refuse part of a card to a container that could take the rest."""
    why = _why_not(security, policy, default_handler)
    if why and not policy.allow_unconfined and is_fractional(cards, part):
        raise not_confinable(why)


def is_able_to_enter(request: CreateRequest) -> bool:
    """Whether the container could undo the limits of another whose processes it sees."""
    return request.privileged or may_enter(request.capabilities)


def may_enter(capabilities: Iterable[str]) -> bool:
    """The same, for capabilities as the runtime reports them."""
    return not _ENTERING.isdisjoint(_names(capabilities))


def not_confinable(why: str) -> NotConfinable:
    """The refusal for a container that asks for part of a card."""
    return NotConfinable(
        f"partage: {why} cannot be given part of a card, since limits do not hold in it; "
        "ask for whole cards, or change the container"
    )


@lru_cache(maxsize=64)
def _is_among(handler: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(handler, pattern) for pattern in patterns)


def _names(capabilities: Iterable[str]) -> Collection[str]:
    return {name.upper().removeprefix("CAP_") for name in capabilities}


def _why_not(security: Security, policy: Confinement, default_handler: str | None) -> str | None:
    handler, runs = security.runtime_handler, security.runtime_handler or default_handler or ""
    if security.privileged:
        return "a privileged container"
    if not _UNCONFINED.isdisjoint(_names(security.capabilities)):
        return "a container with CAP_SYS_ADMIN"
    if security.host_pid:
        return "a container in the node's process namespace (hostPID)"
    if _is_among(runs, policy.vm_handlers):
        return f"a container of runtime handler {runs}"
    if handler and not _is_among(handler, policy.container_handlers):
        return f"a container of runtime handler {handler}, which crishim's container_handlers do not name,"
    return None
