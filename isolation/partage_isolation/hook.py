"""What an engine runs as a container with a grant begins: tells the broker of it, or keeps it from starting.

It stands in the claim's CDI file as a `createRuntime` hook, with the claim's key as its word, and reads the container's
state as OCI has it from its input.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from partage_isolation.wire.client import BrokerClient
from partage_isolation.wire.messages import Enter
from partage_plugins.errors import PartageError

MODULE: Final = "partage_isolation.hook"
WITHIN_S: Final = 10
"""After which an engine ends it, and the container does not start."""
_ASKED_S: Final = 5.0
_MOST_BYTES: Final = 1 << 20


class _State(Struct, frozen=True):
    """Of a container, as its runtime says it to hooks."""

    id: str
    pid: int


def main(words: list[str], state: bytes) -> int:
    """The exit code; a line on stderr says why it is not 0."""
    try:
        root, key = words
        container = msgspec.json.decode(state, type=_State)
        question = msgspec.convert({"ask": "enter", "key": key, "container": container.id, "pid": container.pid}, Enter)
    except (ValueError, msgspec.MsgspecError) as error:
        return _refused(f"this is a hook for container engines, with a root, a key, and a state on its input: {error}")
    try:
        BrokerClient(Path(root), _ASKED_S).enter(question)
    except PartageError as error:
        return _refused(str(error))
    return 0


def _refused(why: str) -> int:
    sys.stderr.write(f"partage: the container does not start: {why}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdin.buffer.read(_MOST_BYTES)))
