"""Messages between the agent and `partage-oci` or commands, as types and as lines (contract 3).

Pure. One JSON object each way, ended by a newline. Any other line raises one `DecodeError`. Readers ignore unknown
fields.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from partage_plugins.api.containers import LONGEST_PATH, AbsolutePath
from partage_plugins.api.engines import EngineId
from partage_plugins.api.gpu import GpuGrant
from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import DecodeError

END: Final = b"\n"
MAX_LINE_BYTES: Final = 64 * 1024
"""The maximum size of a request, including its newline."""
MAX_ANSWER_BYTES: Final = 4 << 20
"""Enough for thousands of containers."""
_LONGEST_WHY: Final = 1024
Stage = Literal["creating", "running", "kept"]
Variable = Annotated[str, Meta(max_length=256)]
Program = Annotated[str, Meta(max_length=LONGEST_PATH, pattern=r"\A[^\x00]*\Z")]

Root = Annotated[str, Meta(pattern=rf"\A(/[^\x00]{{0,{LONGEST_PATH - 1}}})?\Z")]


class Create(Struct, frozen=True, kw_only=True, tag_field="ask", tag="create"):
    """The sending process is about to create a container that mentions cards."""

    id: EngineId
    bundle: AbsolutePath
    root: Root
    """The runtime's `--root`; empty if the engine leaves it to the runtime."""
    runtime: Program
    """The runtime that the sending process executes unless the answer names another."""


class Delete(Struct, frozen=True, kw_only=True, tag_field="ask", tag="delete"):
    """The sending process is about to delete a container; there is no answer."""

    id: EngineId


class Tell(Struct, frozen=True, kw_only=True, tag_field="ask", tag="tell"):
    """List the containers that hold a share."""


class Wait(Struct, frozen=True, kw_only=True, tag_field="ask", tag="wait"):
    """Wait for room for a container with these variables; closing the connection cancels it."""

    env: Annotated[tuple[Variable, ...], Meta(max_length=8)]


class Go(Struct, frozen=True, kw_only=True, tag_field="answer", tag="go"):
    """For `create`: the bundle's configuration has the container's grants. For `wait`: there is room."""

    runtime: str = ""
    """The runtime to execute; if empty, that of the request."""


class No(Struct, frozen=True, kw_only=True, tag_field="answer", tag="no"):
    why: str
    """One sentence that also tells the user what to do."""


class Waits(Struct, frozen=True, kw_only=True, tag_field="answer", tag="waits"):
    """There is no room yet; another answer follows."""

    why: str


class Held(Struct, frozen=True, kw_only=True):
    """A container that holds a share."""

    id: EngineId
    n: int
    stage: Stage
    kept_s: float | None = None
    """How long the hold is kept for a restart."""
    grants: tuple[GpuGrant, ...]


class Told(Struct, frozen=True, kw_only=True, tag_field="answer", tag="told"):
    agent: str
    """The agent's version."""
    containers: tuple[Held, ...]


Question = Create | Delete | Tell | Wait
Answer = Go | No | Waits | Told
_questions: Final = Reader[Question]("question to the agent", Question)  # type: ignore[arg-type]  # a union is no class
_answers: Final = msgspec.json.Decoder[Answer](Answer)


def read_question(line: bytes) -> Question:
    """A request of `partage-oci`; raises `DecodeError`."""
    return _questions.read(line.removesuffix(END))


def question_line(question: Question) -> bytes:
    return msgspec.json.encode(question) + END


def read_answer(line: bytes) -> Answer:
    """An answer of the agent; raises `DecodeError`."""
    try:
        answer: Answer = _answers.decode(line.removesuffix(END))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        shown = line[:80].decode(errors="replace")
        raise DecodeError("answer of the agent", path="$", value=shown, allowed=str(error)) from None
    return answer


def answer_line(answer: Answer) -> bytes:
    return msgspec.json.encode(answer) + END


def refusal(why: str) -> No:
    """A refusal without the prefix `partage: `, which `partage-oci` adds itself."""
    return No(why=why.removeprefix("partage: ")[:_LONGEST_WHY])
