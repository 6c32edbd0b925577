"""How a grant begins and ends: a share of cards for containers of other engines, as a claim of the broker.

It is placed and counted as a pod is. The broker knows its containers, and ends it with the last of them; what the
broker does not know any more is over here, too. What is begun is finished, whoever goes meanwhile.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import structlog

from partage_cli.machine.grants.document import document_of, hook_of
from partage_cli.machine.manager.admission import Admission
from partage_cli.machine.manager.errors import Objection, objection_of
from partage_cli.machine.manager.grant_records import LEAST_OF_UID, NAMESPACE, GrantRecords
from partage_cli.machine.pods.options import Options, OptionWrong, in_flags, pod_of
from partage_cli.machine.wire.messages import Allow, Revoke
from partage_isolation.hook import MODULE, WITHIN_S
from partage_isolation.wire.client import ControlError
from partage_isolation.wire.messages import Prepare, Prepared, Release, Released, Told
from partage_plugins.errors import PartageError, PluginBroken, Refused
from partage_plugins.vocabulary import GPU, Allocation, ContainerName, GpuPart, PodName, PodUid
from partage_plugins.vocabulary.claims import ClaimRecord, claim_key
from partage_plugins.vocabulary.containers import Adjustment
from partage_plugins.vocabulary.names import CardId
from partage_plugins.vocabulary.nvidia import VISIBLE, VOID
from partage_plugins.vocabulary.pods import PodRef

_ENDS_WITHIN_S: Final = 10.0
_AGAIN_S: Final = 0.1
_log = structlog.get_logger()
T = TypeVar("T")


class Lender(Protocol):
    """The broker, as a client has it: all may raise `Refused` and `ControlError`."""

    def prepare(self, question: Prepare) -> Prepared: ...

    def release(self, question: Release) -> Released: ...

    def tell(self) -> Told: ...


class CardSource(Protocol):
    """Cards as CDI has them; see `grants.cards`."""

    def part(self) -> GpuPart: ...

    def document(self, ids: Sequence[CardId]) -> Any: ...  # noqa: ANN401  a file's content


class Grants:
    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        records: GrantRecords,
        *,
        root: Path,
        admission: Admission,
        lender: Lender,
        cards: CardSource,
        refresh: Callable[[], str],
    ) -> None:
        """`refresh` looks which cards there are, and says why that is not known."""
        self._records, self._root, self._admission = records, root, admission
        self._lender, self._cards, self._refresh = lender, cards, refresh
        self._one_at_a_time = asyncio.Lock()
        self._working: set[asyncio.Task[Any]] = set()

    async def allow(self, question: Allow) -> ClaimRecord:
        """One more. Raises `Objection`; then nothing of it is left once the broker has answered."""
        return await self._finished(self._allowed(question))

    async def revoke(self, question: Revoke) -> ClaimRecord | None:
        """No other container gets it. None: it is over; else it ends with its containers. Raises `Objection`."""
        return await self._finished(self._revoked(question))

    async def tidy(self) -> None:
        """What the broker has ended ends here; what it has and nobody wrote down is counted. May raise `OSError`."""
        async with self._one_at_a_time:
            try:
                told = await asyncio.to_thread(self._lender.tell)
            except PartageError:
                return  # it is asked again
            known = {each.key: each for each in told.containers if each.is_claim and each.pod.namespace == NAMESPACE}
            for record in self._records.standing():
                claim = known.pop(claim_key(record.claim.uid), None)
                if claim is None or (record.is_released and await self._is_over(record)):
                    self._records.end(record)
            for claim in known.values():
                self._records.write_down(claim)

    async def close(self) -> None:
        await asyncio.gather(*self._working, return_exceptions=True)

    async def _allowed(self, question: Allow) -> ClaimRecord:
        uid = PodUid(str(uuid.uuid4()))
        name = question.name or f"grant-{uid[:LEAST_OF_UID]}"
        async with self._one_at_a_time:
            self._records.require_free(name)
            allocation = self._placed(name, uid, question)
            try:
                record = self._records.add(name, allocation)
            except OSError as error:
                self._admission.release(uid)
                raise _objection(error) from None
            try:
                await self._put_in_force(record, ends_with_last=not question.keep)
            except (OSError, PartageError) as error:
                await self._undo(record)
                raise _objection(error) from None
        _log.info("a grant begins", grant=name, uid=uid)
        return record

    def _placed(self, name: str, uid: PodUid, question: Allow) -> Allocation:
        """By the words and rules of `partage run`."""
        if not question.share and question.memory is None and question.cards is None:
            raise Objection("bad-question", "a grant is of a share of a card; say --share, --memory or --cards")
        try:
            pod = pod_of(
                Options(
                    image="none",
                    name=name,
                    share=question.share,
                    limit=question.limit,
                    memory=question.memory,
                    cards=question.cards,
                )
            )
        except OptionWrong as wrong:
            raise Objection("bad-question", str(wrong)) from None
        try:
            request = self._admission.request(pod, uid)
        except Objection as objection:
            raise Objection(objection.code, in_flags(str(objection))) from None
        if why := self._refresh():
            raise Objection("not-ready", f"which cards there are is not known: {why}")
        return self._admission.now(request)

    async def _put_in_force(self, record: ClaimRecord, *, ends_with_last: bool) -> None:
        """Limits first, then the file by which containers have them."""
        uid, part = record.claim.uid, self._cards.part()
        prepared = await asyncio.to_thread(self._lender.prepare, _question(record, ends_with_last=ends_with_last))
        if not (prepared.is_claim and prepared.by_hook):
            raise Refused("the broker is of a version without grants; restart partage-broker after the upgrade")
        promised = {promise for grant in record.grants for promise in GPU.promises(grant, part)}
        if empty := promised.difference(prepared.enforces):
            raise Refused(f"the broker enforces no {' and no '.join(sorted(empty))}; its setting `policy` decides that")
        ids = [grant.card for grant in record.grants]
        published = await asyncio.to_thread(self._cards.document, ids)
        hook = hook_of(sys.executable, MODULE, str(self._root), claim_key(uid), within_s=WITHIN_S)
        limits = Adjustment(env={VISIBLE: VOID}, mounts=prepared.mounts)
        self._records.offer(record, document_of(uid, limits, ids, published, hook))

    async def _undo(self, record: ClaimRecord) -> None:
        """What can't be done now the next `tidy` does."""
        try:
            released = self._records.let_go(record)
            if await self._is_over(released):
                self._records.end(released)
        except OSError as error:
            _log.error("what is left of a grant can't be removed yet", grant=record.claim.name, why=str(error))

    async def _revoked(self, question: Revoke) -> ClaimRecord | None:
        async with self._one_at_a_time:
            record = self._records.named(question.name)
            try:
                record = self._records.let_go(record)
                is_over = await self._released(record, kills=question.force)
                if is_over:
                    self._records.end(record)
            except ControlError as error:
                why = f"no other container gets {record.claim.name}, and it ends as soon as the broker answers: {error}"
                raise Objection("not-ready", why) from None
            except (OSError, PartageError) as error:
                raise _objection(error) from None
        return None if is_over else record

    async def _is_over(self, record: ClaimRecord) -> bool:
        try:
            return await self._released(record, kills=False)
        except PartageError:
            return False

    async def _released(self, record: ClaimRecord, *, kills: bool) -> bool:
        """Whether nothing is left of it; of one whose containers are killed that is waited for."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _ENDS_WITHIN_S
        question = Release(key=claim_key(record.claim.uid), kills=kills)
        while True:
            answer = await asyncio.to_thread(self._lender.release, question)
            if answer.is_over or not kills or loop.time() > until:
                return answer.is_over
            await asyncio.sleep(_AGAIN_S)

    async def _finished(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return await asyncio.shield(task)


def _question(record: ClaimRecord, *, ends_with_last: bool) -> Prepare:
    claim = record.claim
    return Prepare(
        key=claim_key(claim.uid),
        pod=PodRef(namespace=claim.namespace, name=PodName(claim.name), uid=PodUid(claim.uid)),
        container=ContainerName("claim"),
        gen=1,
        grants=record.grants,
        is_claim=True,
        by_hook=True,
        ends_with_last=ends_with_last,
    )


def _objection(error: OSError | PartageError) -> Objection:
    if isinstance(error, PluginBroken):
        raise error
    if isinstance(error, ControlError):
        return Objection("not-ready", str(error))
    if isinstance(error, PartageError):
        return objection_of(error)
    return Objection("refused", f"{error.filename}: {error.strerror}; make room there")
