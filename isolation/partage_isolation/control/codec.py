"""Questions and answers as lines: one JSON object each way, ended by a newline.

Pure. A line that is neither gives one `DecodeError`, which the broker answers with `No` and asks nobody to repeat.
"""

from __future__ import annotations

from typing import Final

import msgspec

from partage_isolation.control.questions import Answer, Question
from partage_plugins.codecs.reading import Reader
from partage_plugins.errors import DecodeError

END: Final = b"\n"
MAX_QUESTION_BYTES: Final = 256 * 1024
"""Of a line, its end included; room for a grant of every card that a node may have."""
MAX_ANSWER_BYTES: Final = 16 << 20
"""Room for all processes of all containers."""

_encoder: Final = msgspec.json.Encoder()
_questions: Final = Reader[Question]("question to the broker", Question)  # type: ignore[arg-type]  # a union is no class
_answers: Final = msgspec.json.Decoder[Answer](Answer)


def question_line(question: Question) -> bytes:
    """What a client sends."""
    return _encoder.encode(question) + END


def read_question(line: bytes) -> Question:
    """What a client sent; raises `DecodeError`."""
    return _questions.read(line.removesuffix(END))


def answer_line(answer: Answer) -> bytes:
    """What the broker sends."""
    return _encoder.encode(answer) + END


def read_answer(line: bytes) -> Answer:
    """What the broker sent; raises `DecodeError`."""
    try:
        answer: Answer = _answers.decode(line.removesuffix(END))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        shown = line[:80].decode(errors="replace")
        raise DecodeError("answer of the broker", path="$", value=shown, allowed=str(error)) from None
    return answer
