"""The page about isolation, the contract in the architecture, and the code agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from partage_isolation.audit import findings
from partage_isolation.plugin import AWAY, AWAY_OF_ENGINES, NONSENSE, NONSENSE_OF_ENGINES, OF_ENGINES
from partage_isolation.store.folders import INSIDE, LIBRARY, NIX_PRELOAD_INSIDE, OBJECTS, PRELOAD_INSIDE
from partage_isolation.wire.messages import (
    END,
    Answer,
    BrokerReport,
    CardHeld,
    CardReport,
    ContainerReport,
    ProcessCard,
    ProcessReport,
    Question,
    answer_line,
    question_line,
    read_answer,
    read_question,
)

ROOT: Final = Path(__file__).parents[4]
PAGE: Final = (ROOT / "docs/isolation.md").read_text()
CONTRACTS: Final = (ROOT / "docs/contracts.md").read_text()
TROUBLE: Final = (ROOT / "docs/troubleshooting.md").read_text()
SOURCES: Final = ROOT / "isolation/partage_isolation"


def table(heading: str) -> list[str]:
    """The first cells of the table's rows."""
    rows = PAGE[PAGE.index(heading) :].splitlines()[2:]
    cells = [row.split("|")[1].strip() for row in rows[: next(i for i, row in enumerate([*rows, ""]) if not row)]]
    return [cell.strip("`") for cell in cells]


def test_every_finding_is_on_the_page_with_what_becomes_of_the_container() -> None:
    kinds = [kind for kind in vars(findings).values() if isinstance(kind, type) and issubclass(kind, findings.Finding)]
    found = {kind.__name__: kind.stops for kind in kinds if kind not in {findings.Finding, findings.OfContainer}}
    rows = [row.split("|") for row in PAGE[PAGE.index("| finding |") :].partition("\n\n")[0].splitlines()[2:]]
    assert {row[1].strip(" `"): row[4].strip() == "is stopped" for row in rows} == found


def test_what_a_container_gets_is_on_the_page() -> None:
    assert table("| in the container, read-only |") == [
        INSIDE,
        f"{INSIDE}/{LIBRARY}",
        PRELOAD_INSIDE,
        NIX_PRELOAD_INSIDE,
    ]
    assert all(name in PAGE for name in OBJECTS)


def test_the_page_has_the_shape_of_what_top_tells() -> None:
    block = PAGE.partition("## partage top")[2].partition("```json")[2].partition("```")[0]
    told = msgspec.json.decode(block.replace("…", ""))
    assert set(told) - {"node", "at"} == names(BrokerReport)
    assert set(told["cards"][0]) == names(CardReport)
    (container,) = told["containers"]
    assert set(container) == names(ContainerReport)
    assert set(container["cards"][0]) == names(CardHeld)
    (process,) = container["processes"]
    assert set(process) == names(ProcessReport)
    assert set(process["cards"][0]) == names(ProcessCard)


def test_the_lines_of_the_contract_are_questions_and_answers() -> None:
    block = CONTRACTS.partition("**Control**")[2].partition("```json\n")[2].partition("```")[0]
    lines = [line.encode() for line in block.splitlines()]
    asked = [read_question(line) for line in lines if line.startswith(b'{"ask"')]
    answered = [read_answer(line) for line in lines if line.startswith(b'{"answer"')]
    assert {type(each) for each in asked} == set(members(Question))
    assert {type(each) for each in answered} == set(members(Answer))
    for question, line in zip(asked, lines, strict=False):
        assert question_line(question) == line + END
    for answer in answered:
        assert read_answer(answer_line(answer)) == answer


@pytest.mark.parametrize("sentence", [AWAY, NONSENSE, AWAY_OF_ENGINES, NONSENSE_OF_ENGINES, OF_ENGINES])
def test_every_refusal_can_be_looked_up(sentence: str) -> None:
    assert sentence.partition(",")[0].partition(";")[0] in TROUBLE


def names(kind: type[msgspec.Struct]) -> set[str]:
    return {each.encode_name for each in msgspec.structs.fields(kind)}


def members(union: Any) -> tuple[type, ...]:
    kinds: tuple[type, ...] = union.__args__
    return kinds
