"""The node plugin: in crishim it has the broker prepare each container with a limit to enforce, or rejects it.

Only a container with a limit to enforce is prepared: one with whole cards needs no limits, starts without the broker
and gets no files of partage. If one card has a limit, the broker gets all of the container's cards, since for the
library a card that was not granted has no memory at all. The plugin owns no kind and keeps no state.

Rejections are stable sentences without parts that change between retries, since kubelet writes an event for each new
one.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from partage_isolation.wire.client import BrokerAway, BrokerClient, ControlError, MalformedAnswer
from partage_isolation.wire.messages import Prepare, Prepared, Release, Suspend, one_for_each_card
from partage_plugins.api.containers import Adjustment, Container, Granted
from partage_plugins.api.gpu import GPU
from partage_plugins.api.kinds import Promise
from partage_plugins.api.names import ContainerKey
from partage_plugins.api.node import NodeContext
from partage_plugins.errors import Refused
from partage_plugins.hooks import hookimpl


def question_for(container: Container, granted: Granted) -> Prepare | None:
    """The request for a container; None if there is no limit to enforce."""
    part = granted.part(GPU)
    if not any(GPU.promises(grant, part) for grant in granted.of(GPU)):
        return None
    return _question(container, granted)


def question_of_engine(container: Container, granted: Granted) -> Prepare | None:
    """The request for a container of an engine such as Docker, which is a pod of its own; None if it has no card.

    Sent even without a limit to enforce: only the broker knows when such a container has ended.
    """
    if not granted.of(GPU):
        return None
    id_ = str(container.pod.uid)
    return replace(
        _question(container, granted), is_claim=True, by_hook=True, ends_with_last=True, engine_container=id_
    )


def _question(container: Container, granted: Granted) -> Prepare:
    return Prepare(
        key=container.key,
        pod=container.pod,
        container=container.name,
        gen=granted.gen,
        grants=one_for_each_card(granted.of(GPU)),
        budget=container.budgets.get(GPU.name),
        gang=container.gang,
        is_claim=container.is_claim,
    )


def adjustment_of(prepared: Prepared) -> Adjustment:
    """The container's changes, and the guarantees that they enforce."""
    return Adjustment(mounts=prepared.mounts, enforces={GPU.name: prepared.enforces})


AWAY: Final = (
    "partage: no broker answers on this node, so the limits of this container would not hold; "
    "is partage-broker running there? kubelet tries again"
)
WITHOUT_BUDGETS: Final = (
    "partage: this node's broker is of a version without budgets, so the limits of this container would not hold; "
    "restart partage-broker after the upgrade. kubelet tries again"
)
IN_USE: Final = "partage: a container of this node has the claim still, so its limits stay until that has ended"
WITHOUT_CLAIMS: Final = (
    "partage: this node's broker is of a version without claims, so the limits of this one would not hold; "
    "restart partage-broker after the upgrade. kubelet tries again"
)
OF_ENGINES: Final = (
    "partage: the broker of this machine is of a version without containers of engines, so the limits of this one "
    "would not hold; restart partage-broker after the upgrade"
)
NONSENSE: Final = (
    "partage: this node's broker and its isolation plugin do not understand each other; "
    "restart partage-broker and partage-crishim from one version of partage. kubelet tries again"
)
AWAY_OF_ENGINES: Final = (
    "partage: no broker answers on this machine, so the limits of this container would not hold; "
    "is partage-broker running?"
)
NONSENSE_OF_ENGINES: Final = (
    "partage: the broker of this machine and partage-agent do not understand each other; "
    "restart both from one version of partage"
)
IN_USE_OF_ENGINES: Final = "partage: the container has its share still, and keeps it until it has ended"


class IsolationNode:
    @hookimpl
    def partage_started(self, context: NodeContext) -> None:
        """Locate the broker; it is not contacted yet, since it may be started later."""
        self._broker, self._role = BrokerClient(Path(context.root)), context.role

    @hookimpl
    def partage_removed(self, key: ContainerKey) -> None:
        """Release a claim; the broker detects a container's end itself."""
        if self._role not in {"dra", "oci"}:
            return
        with self._understood():
            is_over = self._broker.release(Release(key=key)).is_over
        if not is_over:
            raise Refused(IN_USE_OF_ENGINES if self._role == "oci" else IN_USE)

    @hookimpl
    def partage_adjust(self, container: Container, granted: Granted) -> Adjustment | None:
        """Add the library and the broker's socket, and report the guarantees that they enforce."""
        if granted.suspended is not None:
            return self._suspended(container, granted, is_on=granted.suspended)
        return self._prepared(container, granted)

    def _suspended(self, container: Container, granted: Granted, *, is_on: bool) -> Adjustment | None:
        """Suspend or resume a running container. To suspend, only the broker's own refusal is one."""
        try:
            adjustment = self._prepared(container, granted)
            if adjustment is None:  # without a limit the broker does not know it
                return None
            with self._understood():
                answer = self._broker.suspend(Suspend(key=container.key, is_on=is_on))
        except Refused as error:
            if is_on and isinstance(error.__cause__, ControlError):  # its absence may be over soon
                return None
            raise
        done: tuple[Promise, ...] = ("suspended",) if is_on and answer.is_done else ()
        return replace(adjustment, enforces={GPU.name: (*adjustment.enforces[GPU.name], *done)})

    def _prepared(self, container: Container, granted: Granted) -> Adjustment | None:
        ask = question_of_engine if self._role == "oci" else question_for
        question = ask(container, granted)
        if question is None:
            return None
        with self._understood():
            prepared = self._broker.prepare(question)
        if prepared.engine_container != question.engine_container:
            raise Refused(OF_ENGINES)
        if prepared.budget != question.budget:
            raise Refused(WITHOUT_BUDGETS)
        if prepared.is_claim != question.is_claim:
            raise Refused(WITHOUT_CLAIMS)
        return adjustment_of(prepared)

    @contextmanager
    def _understood(self) -> Generator[None]:
        of_engines = self._role == "oci"
        try:
            yield
        except BrokerAway as error:
            raise Refused(AWAY_OF_ENGINES if of_engines else AWAY) from error
        except MalformedAnswer as error:
            raise Refused(NONSENSE_OF_ENGINES if of_engines else NONSENSE) from error
