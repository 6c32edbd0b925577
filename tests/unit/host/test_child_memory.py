"""State that the plugins' process keeps between questions is never that of another inventory than the question's."""

from __future__ import annotations

import os
from collections.abc import Generator

import msgspec
import pytest

from partage_plugins.api import Adjustment, Container, Granted, NodeName
from partage_plugins.hooks import hookimpl
from partage_plugins.host import blackbox, messages
from partage_plugins.host.child import Child
from support.sides import THING, container, granted_raw


class Telling:
    """Answers with the ids in the inventory that it was called with."""

    @hookimpl
    def partage_kind(self) -> object:
        return THING

    @hookimpl
    def partage_adjust(self, container: Container, granted: Granted) -> Adjustment:
        del container
        part = granted.part(THING)
        return Adjustment(env={"HERE": ",".join(part.ids) if part else ""})


def told(child: Child, *here: str) -> str:
    given = granted_raw("t0")
    grants = {kind: msgspec.json.encode(raw) for kind, raw in given.grants.items()}
    parts = {kind: msgspec.json.encode({"ids": here}) for kind in given.parts}
    reply = child.answer(messages.Adjust(id=1, container=container(), gen=1, grants=grants, parts=parts))
    assert isinstance(reply, messages.AdjustedReply)
    return reply.adjusted.adjustment.env["HERE"]


@pytest.fixture
def box() -> Generator[blackbox.BlackBox]:
    descriptor = blackbox.create()
    box = blackbox.BlackBox(descriptor)
    os.close(descriptor)
    yield box
    box.close()


def test_another_inventory_reaches_the_plugin_with_the_next_container(box: blackbox.BlackBox) -> None:
    child = Child(box)
    child.answer(
        messages.Start(
            id=0, node=NodeName("n1"), root="/", paths={"telling": f"{__name__}:Telling"}, blocked=(), traced=False
        )
    )
    assert told(child, "t0") == "t0"
    assert told(child, "t0", "t1") == "t0,t1"
    assert told(child, "t0") == "t0"
