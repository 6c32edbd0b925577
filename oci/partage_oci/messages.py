"""What `partage-oci` and commands ask the agent and are answered, as types and as lines (contract 3).

Pure. One JSON object each way, ended by a newline. A line that is neither gives one `DecodeError`. Readers ignore
fields that they do not know.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary.containers import LONGEST_PATH, AbsolutePath
from partage_plugins.vocabulary.engines import EngineId
from partage_plugins.vocabulary.gpu import GpuGrant

END: Final = b"\n"
MAX_LINE_BYTES: Final = 64 * 1024
"""Of a question, its end included."""
MAX_ANSWER_BYTES: Final = 4 << 20
"""Room for thousands of containers."""
_LONGEST_WHY: Final = 1024
Stage = Literal["creating", "running", "kept"]
Variable = Annotated[str, Meta(max_length=256)]
Program = Annotated[str, Meta(max_length=LONGEST_PATH, pattern=r"\A[^\x00]*\Z")]


class Create(Struct, frozen=True, kw_only=True, tag_field="ask", tag="create"):
    """A container that says something of cards is about to be created, by the process that asks."""

    id: EngineId
    bundle: AbsolutePath
    root: Annotated[str, Meta(max_length=LONGEST_PATH, pattern=r"\A(/[^\x00]*)?\Z")]
    """The runtime's `--root`; empty: its own default, as with Podman."""
    runtime: Program
    """What the asking process becomes where the answer names no other."""


class Delete(Struct, frozen=True, kw_only=True, tag_field="ask", tag="delete"):
    """A container is about to be deleted, by the process that asks; there is no answer."""

    id: EngineId


class Tell(Struct, frozen=True, kw_only=True, tag_field="ask", tag="tell"):
    """Which containers hold a share."""


class Wait(Struct, frozen=True, kw_only=True, tag_field="ask", tag="wait"):
    """Until there is room for a container with these variables; to close the connection ends it."""

    env: Annotated[tuple[Variable, ...], Meta(max_length=8)]


class Go(Struct, frozen=True, kw_only=True, tag_field="answer", tag="go"):
    """To `create`: the bundle's configuration holds what the container was given. To `wait`: there is room."""

    runtime: str = ""
    """To become this one; empty: the one of the question."""


class No(Struct, frozen=True, kw_only=True, tag_field="answer", tag="no"):
    why: str
    """One sentence that says what to do."""


class Waits(Struct, frozen=True, kw_only=True, tag_field="answer", tag="waits"):
    """Not yet; another answer follows."""

    why: str


class Held(Struct, frozen=True, kw_only=True):
    """A container that holds a share."""

    id: EngineId
    n: int
    stage: Stage
    kept_s: float | None = None
    """How long its place is kept for a restart."""
    grants: tuple[GpuGrant, ...]


class Told(Struct, frozen=True, kw_only=True, tag_field="answer", tag="told"):
    agent: str
    """Its version."""
    containers: tuple[Held, ...]


Question = Create | Delete | Tell | Wait
Answer = Go | No | Waits | Told
_questions: Final = Reader[Question]("question to the agent", Question)  # type: ignore[arg-type]  # a union is no class
_answers: Final = msgspec.json.Decoder[Answer](Answer)


def read_question(line: bytes) -> Question:
    """What `partage-oci` sent; raises `DecodeError`."""
    return _questions.read(line.removesuffix(END))


def question_line(question: Question) -> bytes:
    return msgspec.json.encode(question) + END


def read_answer(line: bytes) -> Answer:
    """What the agent answered; raises `DecodeError`."""
    try:
        answer: Answer = _answers.decode(line.removesuffix(END))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        shown = line[:80].decode(errors="replace")
        raise DecodeError("answer of the agent", path="$", value=shown, allowed=str(error)) from None
    return answer


def answer_line(answer: Answer) -> bytes:
    return msgspec.json.encode(answer) + END


def refusal(why: str) -> No:
    """`partage-oci` says itself whose words these are."""
    return No(why=why.removeprefix("partage: ")[:_LONGEST_WHY])
