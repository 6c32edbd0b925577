"""Whether limits can hold in a container: who can undo what is put around it gets whole cards or none. Pure.

Privileged containers and those with CAP_SYS_ADMIN can unmount our files, those in the node's process namespace can
reach other processes, and in a virtual machine the library would not see the node's broker. They may be given whole
cards, whose limits nobody else depends on, or what the operator allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from partage_crishim.deciding.claims import Claim
from partage_crishim.deciding.errors import NotConfinable
from partage_plugins.vocabulary import GPU, GpuPart, Security

VM_HANDLERS: Final = ("kata*", "*firecracker*", "*cloud-hypervisor*", "runsc*", "gvisor*")
"""Usual names of runtime handlers that put a kernel of their own between the container and the node."""
_UNCONFINED: Final = frozenset(("SYS_ADMIN", "ALL"))


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """What the operator set."""

    allow_unconfined: bool = False
    """Starts them all the same: their limits then hold as long as nobody in them minds."""
    vm_handlers: tuple[str, ...] = VM_HANDLERS


def is_fractional(claim: Claim, part: GpuPart | None) -> bool:
    """Whether others depend on a limit of this container."""
    return any(GPU.promises(grant, part) for grant in claim.cards)


def require_confinable(security: Security, claim: Claim, part: GpuPart | None, policy: Confinement) -> None:
    """Refuses part of a card to a container that could take the rest."""
    why = _why_not(security, policy)
    if why and not policy.allow_unconfined and is_fractional(claim, part):
        raise NotConfinable(
            f"partage: {why} cannot be given part of a card, since limits do not hold in it; "
            "ask for whole cards, or change the container"
        )


@lru_cache(maxsize=64)
def _is_vm(handler: str, vm_handlers: tuple[str, ...]) -> bool:
    return any(fnmatchcase(handler, pattern) for pattern in vm_handlers)


def _why_not(security: Security, policy: Confinement) -> str | None:
    if security.privileged:
        return "a privileged container"
    if not _UNCONFINED.isdisjoint(name.upper().removeprefix("CAP_") for name in security.capabilities):
        return "a container with CAP_SYS_ADMIN"
    if security.host_pid:
        return "a container in the node's process namespace (hostPID)"
    if _is_vm(security.runtime_handler, policy.vm_handlers):
        return f"a container of runtime handler {security.runtime_handler}"
    return None
