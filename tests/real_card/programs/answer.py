"""A program's answer: one line of JSON, the last that it prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any


class Absent(Exception):
    """The machine lacks something that the question needs; the message names it."""


def answer(questions: Mapping[str, Callable[..., Mapping[str, Any]]]) -> int:
    """Ask the question that the first word names; the others are its arguments."""
    name, *words = sys.argv[1:]
    try:
        facts = dict(questions[name](*words))
    except Absent as absent:
        facts = {"absent": str(absent)}
    sys.stdout.write(f"\n{json.dumps(facts)}\n")
    sys.stdout.flush()
    return 0
