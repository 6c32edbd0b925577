"""Writes docs/real-card.md from an answer that is committed: what was expected beside what was found.

    python -m real_card.page [RESULT]      # copies RESULT to results/ first

The page is of all results there, one column of answers each; without one it says "not yet".
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from real_card import result
from real_card.ground import ROOT
from real_card.result import Answer, Result
from real_card.row import Part, Row
from real_card.rows import ROWS

PAGE: Final = ROOT / "docs/real-card.md"
RESULTS: Final = Path(__file__).parent / "results"
_HEAD: Final = """\
# On a real card

What partage rests on, asked of a real card: what was expected, and what was found. `make real` asks, on any machine
with a card and its driver; Kubernetes and root are not needed. Its three parts take under nine minutes each
(`tools/real bare`, `library`, `time`), change no setting of the card and leave no process there. A machine without a
compiler or a network takes what `tools/real carry` puts into `.cache/real/carried` elsewhere. Frameworks are tried
where `python3` has them; `PARTAGE_REAL_PYTHON` names another interpreter. `tools/real page FILE` makes this page.
"""
_TITLES: Final = {
    Part.BARE: "What the driver does by itself",
    Part.LIBRARY: "In a container of 20 GiB",
    Part.TIME: "Time",
}
_NOT_YET: Final = "not yet"


def page(results: Sequence[Result]) -> str:
    return "\n".join((_HEAD, *_machines(results), *_tables(results)))


def _machines(results: Sequence[Result]) -> Iterator[str]:
    if not results:
        yield "No card has been asked yet.\n"
    for each in results:
        machine = each.machine
        yield (
            f"- {machine['card']}, driver {machine['driver']} (CUDA {machine['cuda']}), kernel {machine['kernel']}, "
            f"partage {each.commit[:12] or 'of no commit'}. "
            f"Left as it was: {'yes' if each.left_as_found else '**no**'}."
        )
    if results:
        yield ""


def _tables(results: Sequence[Result]) -> Iterator[str]:
    answers = [{each.row: each for each in found.answers} for found in results]
    heads = [found.machine["card"] for found in results] or ["found"]
    for part, rows in ROWS.items():
        yield f"## {_TITLES[part]}\n"
        yield f"| question | expected | {' | '.join(heads)} |"
        yield f"|---|---|{'---|' * len(heads)}"
        yield from (_row(row, answers) for row in rows)
        yield ""


def _row(row: Row, answers: Sequence[Mapping[str, Answer]]) -> str:
    found = [_cell(each.get(row.name)) for each in answers] or [_NOT_YET]
    return f"| `{row.name}`: {row.asks} | {row.expected} | {' | '.join(found)} |"


def _cell(answer: Answer | None) -> str:
    """What differs, and what failed, is marked."""
    if answer is None:
        return _NOT_YET
    text = answer.found.replace("|", "\\|").replace("\n", " ")
    if answer.state == "answered":
        return f"**differs:** {text}" if answer.agrees is False else text
    return text if answer.state == "absent" else f"**{answer.state}:** {text}"


def committed() -> list[Result]:
    """In the order of their names; none of a simulated card."""
    return [result.read(path) for path in sorted(RESULTS.glob("*.json"))]


def main(words: Sequence[str]) -> int:
    for word in words:
        found = result.read(Path(word))
        if found.simulated:
            sys.stderr.write(f"real: {word} is of a simulated card; the page is of real ones\n")
            return 2
        RESULTS.mkdir(exist_ok=True)
        name = f"{found.machine['card']}-{found.machine['driver']}".lower().replace(" ", "-")
        target = RESULTS / f"{name}.json"
        if Path(word).resolve() != target:
            shutil.copyfile(word, target)
    PAGE.write_text(page(committed()))
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}: written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
