"""The flags of the docker and podman commands in README and docs/ exist in these engines."""

from __future__ import annotations

from support.engines.engine import Engine
from support.fences import commands, typed

IMAGES = ("IMAGE", "-")
"""The argument after the flags; the container's own arguments follow it."""


def test_every_flag_of_a_page_is_the_engines(engine: Engine) -> None:
    found = {words for each in typed() for words in commands(each.line) if words[0] == engine.command}
    assert found
    for _, *words in sorted(found):
        flags = words[: next(index for index, word in enumerate(words) if word in IMAGES)]
        assert "Usage:" in engine.said(*flags, "--help")
