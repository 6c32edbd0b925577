"""Programs that each want a container with a part of a card, all at once, and ask until the manager says yes or no.

A manager or runtime that dies under a question answers neither; then the question is asked again, as any client would.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from support.manager_lines import Gone, Json, Manager

PATIENCE_S: Final = 240.0
_PAUSE_S: Final = 0.1
_AGAIN: Final = frozenset({"too-many", "not-ready", "runtime", "refused", "image"})
"""Refused by crishim: the broker or the keys may be away for a moment. An image is not found while the runtime is."""


@dataclass(frozen=True)
class Verdict:
    name: str
    runs: bool
    why: str = ""


def all_started(manager: Manager, pods: Sequence[Json]) -> list[Verdict]:
    """Each by a program of its own, and what each was told at last."""
    with ThreadPoolExecutor(len(pods)) as programs:
        return list(programs.map(lambda pod: _started(manager, pod), pods))


def _started(manager: Manager, pod: Json) -> Verdict:
    name, until_s = pod["metadata"]["name"], time.monotonic() + PATIENCE_S
    last: Json | None = None
    asked_before = False
    while time.monotonic() < until_s:
        last = _answer(manager, {"do": "run", "pod": pod})
        if last is not None and last["is"] == "ran":
            return Verdict(name, runs=True)
        if last is not None and last["code"] == "no-room":
            return Verdict(name, runs=False, why=last["why"])
        if last is not None and last["code"] == "name-taken" and asked_before:
            if _is_running(manager, name):
                return Verdict(name, runs=True)
        elif last is not None and last["code"] not in _AGAIN:
            raise AssertionError(f"{name}: {last}")
        asked_before = True
        time.sleep(_PAUSE_S)
    raise AssertionError(f"{name} was told neither yes nor no within {PATIENCE_S:g} s; at last: {last}")


def _is_running(manager: Manager, name: str) -> bool:
    """Whether what an earlier question began has come to its end."""
    last = _answer(manager, {"do": "ps", "all": True, "names": [name]})
    return last is not None and last["is"] == "pods" and all(pod["phase"] == "running" for pod in last["pods"])


def _answer(manager: Manager, question: Json) -> Json | None:
    try:
        return manager.ask(question)
    except Gone:
        return None
