"""Writes docs/real-card.md: the expected answers beside the found ones, and their runs.

`tools/real page FILE...` first merges the answers into tests/real_card/results.json, which is committed. A row without
an answer has "not yet".
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import MsgspecError
from msgspec.structs import replace

from real_card import result
from real_card.ground import ROOT
from real_card.result import Answer, Result
from real_card.row import Row
from real_card.rows import SECTIONS

PAGE: Final = ROOT / "docs/real-card.md"
RESULTS: Final = Path(__file__).parent / "results.json"
_HEAD: Final = """\
# On a real card

What partage rests on, asked of a real card: what was expected, and what was found. `make real` asks on any machine
with a card and its driver; Kubernetes and root are not needed. It takes eight minutes at most (`tools/real --minutes
8`), asks what decides most first, and writes each answer at once. `tools/real --missing FILE` asks what FILE lacks.
It changes no setting of the card, leaves no process, and asks for no more managed memory than half of what is free
(`--own-card` lifts that). Frameworks are those of `python3`; `PARTAGE_REAL_PYTHON` names another interpreter.

For a machine with neither a compiler nor a network, `tools/real carry` makes one folder: there, `tools/real` in it
asks. `tools/real page FILE...` adds answers to this page.
"""
_NOT_YET: Final = "not yet"
Place = tuple[str, str]


def page(found: Result) -> str:
    numbers = {name: number for number, name in enumerate(found.runs, start=1)}
    return "\n".join((_HEAD, *_runs(found, numbers), *_tables(found, numbers)))


def _runs(found: Result, numbers: Mapping[str, int]) -> Iterator[str]:
    if not found.runs:
        yield "No card has been asked yet.\n"
        return
    yield "| run | card | driver | CUDA | kernel | partage | left as it was |"
    yield "|---|---|---|---|---|---|---|"
    for name, run in found.runs.items():
        machine = run.machine
        left = "yes" if run.left_as_found else "**no**" if run.after else "cut off"
        commit = run.commit[:12] + (", changed" if run.commit.endswith("-dirty") else "")
        cells = (machine["card"], machine["driver"], machine["cuda"], machine["kernel"], commit, left)
        yield f"| {numbers[name]}, {run.began} | {' | '.join(map(str, cells))} |"
    yield ""


def _tables(found: Result, numbers: Mapping[str, int]) -> Iterator[str]:
    places = list(dict.fromkeys(run.place for run in found.runs.values()))
    answers = {(answer.row, found.runs[answer.run].place): answer for answer in found.answers}
    heads = [", driver ".join(place) for place in places] or ["found"]
    for title, rows in SECTIONS.items():
        yield f"## {title}\n"
        yield f"| question | expected | {' | '.join(heads)} |"
        yield f"|---|---|{'---|' * len(heads)}"
        yield from (_row(row, [answers.get((row.name, place)) for place in places], numbers) for row in rows)
        yield ""


def _row(row: Row, answers: Sequence[Answer | None], numbers: Mapping[str, int]) -> str:
    cells = [_cell(each and _judged_now(row, each), numbers) for each in answers] or [_NOT_YET]
    return f"| `{row.name}`: {row.asks} | {row.expected} | {' | '.join(cells)} |"


def _judged_now(row: Row, answer: Answer) -> Answer:
    """Judge by today's expectation.

    An answer from before the question was changed, which can't be judged, keeps its verdict.
    """
    if answer.state != "answered" or not answer.facts:
        return answer
    try:
        agrees, found = row.judge(answer.facts)
    except (LookupError, TypeError, ValueError):
        return answer
    return replace(answer, agrees=agrees, found=found)


def _cell(answer: Answer | None, numbers: Mapping[str, int]) -> str:
    """Differences and failures are marked; the number is the run's."""
    if answer is None or answer.state == result.NO_TIME:
        return _NOT_YET
    text = answer.found.replace("|", "\\|").replace("\n", " ")
    if answer.state == "answered":
        text = f"**differs:** {text}" if answer.agrees is False else text
    elif answer.state != "absent":
        text = f"**{answer.state}:** {text}"
    return f"{text} ({numbers[answer.run]})"


def committed() -> Result:
    return result.read(RESULTS) if RESULTS.exists() else Result()


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/real page", description="Adds answers to docs/real-card.md.")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="answers of runs on real cards")
    given = parser.parse_args(words)
    known = committed()
    for path in given.files:
        try:
            more = result.read(path)
        except (OSError, MsgspecError) as error:
            return _refuse(f"{path}: no answers of a card ({error})")
        if any(run.simulated for run in more.runs.values()):
            return _refuse(f"{path} has answers of a simulated card; the page is of real ones")
        known = result.merged((known, more))
    if given.files:
        result.write(RESULTS, known)
    PAGE.write_text(page(known))
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}: written\n")
    return 0


def _refuse(why: str) -> int:
    sys.stderr.write(f"real: {why}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
