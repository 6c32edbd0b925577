"""Makes external text safe for a line of a log or terminal: it moves no cursor and begins no line. Pure."""

from __future__ import annotations


def printable(text: str, instead: str = "?") -> str:
    return "".join(letter if letter.isprintable() else instead for letter in text)


def one_line(text: str, longest: int) -> str:
    """Shortens the text to `longest` characters, with an ellipsis if anything is cut off."""
    line = printable(text[: longest + 1], " ")
    return line if len(line) <= longest else line[: longest - 1] + "…"
