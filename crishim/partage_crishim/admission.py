"""Admission: decides whether an intercepted call is passed through, rewritten or rejected.

While the device filter is off, a request whose bytes contain neither an allocation nor a claim is never parsed; it is
forwarded byte for byte, even when our own components are broken. A request that contains either is rejected if anything
goes wrong. If the device filter itself fails, it blocks access to cards and lets the container start; a request that
cannot be read is rejected, since a runtime may still be able to read it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

from partage_base.cri import Changes, CreateRequest, MessageWrong, read_create, rewritten
from partage_crishim.claims import ClaimGate
from partage_crishim.decisions import INTERCEPTED, RESTORE_POD, Code, Decision, InterceptedCall, Pass, Refuse, Rewrite
from partage_crishim.device_filter import DeviceFilter
from partage_crishim.grants import GrantRewriter
from partage_crishim.rules.allocation import may_claim
from partage_crishim.rules.errors import AllocationRefused, RequestUnread
from partage_crishim.rules.guard import without_cards
from partage_plugins.api import Kind
from partage_plugins.errors import PluginError, PluginFailed, PluginNonsense, Refused
from partage_plugins.text import one_line

_LONGEST_LINE: Final = 1000
_UNREAD: Final = (
    "partage: a request that names an allocation or a claim cannot be read; is this kubelet newer than crishim?"
)
_UNREAD_BY_GUARD: Final = (
    "partage: this container's request cannot be read ({}), and this node's cards are guarded; correct the pod, or is "
    "this kubelet newer than crishim?"
)
_UNWRITTEN: Final = "partage: crishim cannot write to its folder below /run/partage; is the disk full?"
_RESTORED: Final = (
    "partage: a pod with an allocation or a claim cannot be restored from a checkpoint; create it again, to be "
    "scheduled"
)
"""Its containers would hold grants that were neither verified nor reserved, and that are not enforced.

The call is new and its fields may still change, so a pod that mentions our annotation elsewhere is rejected too.
"""
_RESTORED_PAST_GUARD: Final = (
    "partage: this node's cards are guarded, and what a pod that is restored from a checkpoint asks for can't be seen; "
    "create it again, or restore it on a node without cards"
)
_DEFECT: Final = "partage: crishim met a defect of its own on this container; its log has more. Please report it"


class AuditEvent(Struct, frozen=True, kw_only=True):
    """An event for the log: a container was rewritten or rejected, or an internal error occurred."""

    what: Literal["granted", "guarded", "refused", "defect"]
    """`guarded`: the request was rewritten to keep cards from the container."""
    request: CreateRequest | None
    """None if the request could not be read."""
    error: Exception | None = None
    """The reason for the rejection, or the internal error."""
    gen: int = 0
    kinds: tuple[Kind, ...] = ()
    asked: bool = False
    """For a `guarded` event: whether the request itself contained what was removed."""

    @property
    def container(self) -> dict[str, str]:
        """The container as labels; empty values if it is unknown."""
        of = self.request
        namespace, pod, container = ("", "", "") if of is None else (of.namespace, of.pod, of.container)
        return {"namespace": namespace, "pod": pod, "container": container}


class Admission:
    """Decides on each intercepted call; a `verdicts.Decide`."""

    def __init__(
        self,
        grants: GrantRewriter,
        device_filter: DeviceFilter,
        claims: ClaimGate,
        tell: Callable[[AuditEvent], None],
    ) -> None:
        self._grants = grants
        self._device_filter = device_filter
        self._claims = claims
        self._tell = tell

    async def __call__(self, call: InterceptedCall) -> Decision:
        """The decision; raises nothing but a cancellation."""
        if call.method not in INTERCEPTED or not await self._is_ours(call.message):
            return Pass()
        try:
            if call.method == RESTORE_POD:
                sentence = _RESTORED if may_claim(call.message) else _RESTORED_PAST_GUARD
                return Refuse(Code.FAILED_PRECONDITION, sentence)
            return await self._created(call.message)
        except Exception as defect:  # noqa: BLE001  whatever goes wrong in here is a decision
            self._tell(AuditEvent(what="defect", request=None, error=defect))
            return Refuse(Code.INTERNAL, _DEFECT)

    async def _is_ours(self, message: bytes) -> bool:
        """Whether the request may contain a grant, or the device filter applies."""
        try:
            return may_claim(message) or await self._device_filter.is_on()
        except Exception as defect:  # noqa: BLE001  as where there is no card
            self._tell(AuditEvent(what="defect", request=None, error=defect))
            return False

    async def _created(self, message: bytes) -> Decision:
        try:
            request = read_create(message)
        except MessageWrong as wrong:  # the runtime may still be able to read it
            no = AllocationRefused(_UNREAD) if may_claim(message) else RequestUnread(_UNREAD_BY_GUARD.format(wrong))
            return self._refused(None, no, str(no))
        try:
            return await self._decided(message, request)
        except Refused as no:
            return self._refused(request, no, str(no))
        except PluginError as fault:
            more = "; crishim's log has more" if isinstance(fault, PluginFailed | PluginNonsense) else ""
            return self._refused(request, fault, f"plugin {fault.plugin}: {fault.hook}: {fault.why}{more}")
        except OSError as error:
            return self._refused(request, error, _UNWRITTEN)

    async def _decided(self, message: bytes, request: CreateRequest) -> Decision:
        allocated = self._grants.allocated(request)
        if request.cdi or request.target:
            await self._claims.require(request, is_granted=allocated is not None)
        if allocated is not None:
            allocation, grants = allocated
            decision = await self._grants.rewrite(message, request, allocation, grants)
            self._tell(AuditEvent(what="granted", request=request, gen=allocation.gen, kinds=tuple(grants)))
            return decision
        changes = await self._guarded(request)
        if not changes:
            return Pass()
        said = bool(changes.without_mounts) or any(name in changes.env for name, _ in request.env)
        self._tell(AuditEvent(what="guarded", request=request, asked=said))
        return Rewrite(rewritten(message, changes))

    async def _guarded(self, request: CreateRequest) -> Changes:
        try:
            return await self._device_filter.changes(request)
        except Refused:
            raise
        except Exception as defect:  # noqa: BLE001  a guard that fails keeps the door shut
            self._tell(AuditEvent(what="defect", request=request, error=defect))
            return without_cards(request)

    def _refused(self, request: CreateRequest | None, error: Exception, sentence: str) -> Refuse:
        self._tell(AuditEvent(what="refused", request=request, error=error))
        return Refuse(Code.FAILED_PRECONDITION, one_line(sentence, _LONGEST_LINE))
