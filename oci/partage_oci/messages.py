"""What `partage-oci` asks the agent and is answered, as types and as lines (contract 3).

Pure. One JSON object each way, ended by a newline. A line that is neither gives one `DecodeError`. Readers ignore
fields that they do not know.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from partage_plugins.codecs.decoder import Reader
from partage_plugins.vocabulary.containers import LONGEST_PATH, AbsolutePath
from partage_plugins.vocabulary.engines import EngineId

END: Final = b"\n"
MAX_LINE_BYTES: Final = 64 * 1024
"""Of a question, its end included."""
_LONGEST_WHY: Final = 1024
Program = Annotated[str, Meta(max_length=LONGEST_PATH, pattern=r"\A[^\x00]*\Z")]

Root = Annotated[str, Meta(pattern=rf"\A(/[^\x00]{{0,{LONGEST_PATH - 1}}})?\Z")]


class Create(Struct, frozen=True, kw_only=True, tag_field="ask", tag="create"):
    """A container that says something of cards is about to be created, by the process that asks."""

    id: EngineId
    bundle: AbsolutePath
    root: Root
    """The runtime's `--root`; empty where the engine leaves it to the runtime."""
    runtime: Program
    """What the asking process becomes where the answer names no other."""


class Delete(Struct, frozen=True, kw_only=True, tag_field="ask", tag="delete"):
    """A container is about to be deleted, by the process that asks; there is no answer."""

    id: EngineId


class Go(Struct, frozen=True, kw_only=True, tag_field="answer", tag="go"):
    """The bundle's configuration holds what the container was given."""

    runtime: str = ""
    """To become this one; empty: the one of the question."""


class No(Struct, frozen=True, kw_only=True, tag_field="answer", tag="no"):
    why: str
    """One sentence that says what to do."""


Question = Create | Delete
Answer = Go | No
_questions: Final = Reader[Question]("question to the agent", Question)  # type: ignore[arg-type]  # a union is no class


def read_question(line: bytes) -> Question:
    """What `partage-oci` sent; raises `DecodeError`."""
    return _questions.read(line.removesuffix(END))


def answer_line(answer: Answer) -> bytes:
    return msgspec.json.encode(answer) + END


def refusal(why: str) -> No:
    """`partage-oci` says itself whose words these are."""
    return No(why=why.removeprefix("partage: ")[:_LONGEST_WHY])
