"""Keeps the node's annotation up to date: watches its own Node, and patches it when the annotation differs.

The current value is known from a watch, so a steady state costs no calls, and a change by another writer is noticed
within moments. Such changes are reverted with a growing delay, or two writers that disagree would patch without end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from partage_base.daemon.logs import Repeats
from partage_base.kube import (
    ApiServer,
    Backoff,
    Changed,
    Deleted,
    KubeError,
    Listed,
    Lost,
    Node,
    Seen,
    Undecodable,
    follow,
    node_path,
    nodes_path,
)
from partage_plugins.api.keys import INVENTORY as ANNOTATION

FIRST_S: Final = 0.5
MOST_S: Final = 8.0
"""Short enough to restore the annotation soon after the API server is back, even with a thousand nodes at once."""
_MOST_CONTESTED_S: Final = 60.0
_FORGIVEN_AFTER_S: Final = 600.0
"""After this long without another writer, the delay starts from its first value again."""
_log = structlog.get_logger()


class Publisher:
    def __init__(
        self,
        server: ApiServer,
        node: str,
        *,
        on_labels: Callable[[Mapping[str, str]], None] = lambda _labels: None,
        patched: Callable[[str], None] = lambda _outcome: None,
    ) -> None:
        self._server = server
        self._node = node
        self._on_labels = on_labels
        self._patched = patched
        self._wanted: str | None = None
        self._seen: Node | None = None
        self._written: str | None = None
        self._is_known = False
        self._changed = asyncio.Event()
        self._backoff = Backoff(first_s=FIRST_S, most_s=MOST_S)
        self._contested_s = float("-inf")
        self._contest = Backoff(first_s=FIRST_S, most_s=_MOST_CONTESTED_S)
        self._repeats = Repeats(every_s=30)

    def want(self, text: str) -> None:
        """Set the text that the annotation should have."""
        self._wanted = text
        self._changed.set()

    @property
    def is_true(self) -> bool:
        """Whether the annotation has that text, as far as we know."""
        return self._is_known and self._wanted is not None and self._stands() == self._wanted

    @property
    def node_uid(self) -> str:
        """The uid of the Node object; empty while unknown."""
        return self._seen.metadata.uid if self._seen else ""

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._write())

    async def _follow(self) -> None:
        backoff = Backoff(first_s=FIRST_S, most_s=MOST_S)
        only = f"metadata.name={self._node}"
        async for seen in follow(self._server, nodes_path(), Node, fields=only, backoff=backoff):
            self._take(seen)

    def _take(self, seen: Seen[Node]) -> None:
        match seen:
            case Listed(items, unread):
                if not unread:
                    self._observe(items[0] if items else None)
                for each in unread:
                    self._say_unread(each)
            case Changed(item):
                if not self._is_older(item):
                    self._observe(item)
            case Deleted():
                self._observe(None)
            case Undecodable():
                self._say_unread(seen)
            case Lost(error):
                self._repeats.failed("the API server can't be followed; it will be tried again", error)

    def _observe(self, node: Node | None) -> None:
        if node is None:
            self._say_missing()
        if node is None or self._seen is None or node.metadata.uid != self._seen.metadata.uid:
            self._written = None  # it was written to another Node object, if at all
        self._seen, self._is_known = node, True
        self._on_labels(node.metadata.labels if node else {})
        self._changed.set()

    def _is_older(self, node: Node) -> bool:
        """Whether a watch event is older than our own patch."""
        versions = [each.metadata.resource_version for each in (self._seen, node) if each is not None]
        return len(versions) > 1 and all(map(str.isdecimal, versions)) and int(versions[1]) < int(versions[0])

    async def _write(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._seen is not None and self._wanted not in (None, self._stands()):
                text = str(self._wanted)
                if text != self._written or await self._is_still_wrong(text):
                    await self._patch(text)

    async def _patch(self, text: str) -> None:
        try:
            node = await self._server.patch(
                node_path(self._node), {"metadata": {"annotations": {ANNOTATION: text}}}, Node, how="merge"
            )
        except KubeError as error:
            self._patched("failed")
            self._repeats.failed("the inventory is not in the API server yet", error)
            await asyncio.sleep(self._backoff.after(error))
            return
        self._patched("done")
        self._backoff.reset()
        if text != self._written:
            self._contest.reset()
        self._written = text
        if not self._is_older(node):
            self._seen = node
        _log.info("inventory published", bytes=len(text))

    async def _is_still_wrong(self, text: str) -> bool:
        """Wait while another writer's text is in place; returns early if there is a new text to publish."""
        delay_s = self._slowly_s()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                while self._wanted == text != self._stands():
                    self._changed.clear()
                    await self._changed.wait()
        return self._wanted == text != self._stands() and self._seen is not None

    def _slowly_s(self) -> float:
        """How long to leave another writer's text in place."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._contested_s > _FORGIVEN_AFTER_S:
            self._contest.reset()
        self._contested_s = now_s
        delay_s = self._contest.after()
        self._repeats.say(
            "somebody else changed the inventory's annotation; does another advertiser have this node's name?",
            node=self._node,
            again_in_s=round(delay_s, 1),
        )
        return delay_s

    def _stands(self) -> str | None:
        return self._seen.metadata.annotations.get(ANNOTATION) if self._seen else None

    def _say_missing(self) -> None:
        self._repeats.say(
            "there is no Node of this name; is node_name kubelet's, and has kubelet registered it?", node=self._node
        )

    def _say_unread(self, which: Undecodable) -> None:
        """Report an unreadable Node; its last known state is kept, since it is ours and has hardly changed."""
        self._repeats.say("the Node can't be read; its annotation stays", node=self._node, why=which.why)
