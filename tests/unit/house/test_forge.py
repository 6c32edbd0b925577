"""Files for a public forge: workflows run the commands that everybody runs, and forms ask for useful facts.

No workflow runs here.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any, Final

import click
import msgspec
import pytest

from partage_cli.main import SUBCOMMANDS

ROOT: Final = Path(__file__).parents[3]
FORGE: Final = ROOT / ".github"
WORKFLOWS: Final = sorted((FORGE / "workflows").glob("*.yml"))
FORMS: Final = [path for path in sorted((FORGE / "ISSUE_TEMPLATE").glob("*.yml")) if path.name != "config.yml"]
SKILLS: Final = sorted((ROOT / "skills").glob("*/SKILL.md"))
PINNED: Final = re.compile(r"[\w./-]+@[0-9a-f]{40}")
CONSOLE: Final = re.compile(r"^ *```console\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
FLAG: Final = re.compile(r"(?<=\s)--?[a-z][a-z-]*")
DOCTOR: Final[str] = "partage doctor -o json"
KNOWN_INPUTS: Final = {"markdown", "textarea", "input", "dropdown", "checkboxes"}


def read(path: Path) -> Any:
    return msgspec.yaml.decode(path.read_bytes())


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in read(workflow)["jobs"].values() for step in job["steps"]]


def test_there_is_a_workflow_for_each_push_and_one_for_a_release() -> None:
    assert [path.stem for path in WORKFLOWS] == ["release", "test"]
    runs = {path.stem: "".join(step.get("run", "") for step in steps(path)) for path in WORKFLOWS}
    assert (".ci/run" in runs["test"], "make release" in runs["release"]) == (True, True)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_pins_each_action_and_may_write_nothing_that_it_does_not_say(workflow: Path) -> None:
    assert [step["uses"] for step in steps(workflow) if "uses" in step and not PINNED.fullmatch(step["uses"])] == []
    assert read(workflow)["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_has_of_ours_is_there(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "\n".join(step.get("run", "") for step in steps(workflow))
    assert set(re.findall(r"^\s*make ([a-z-]+)", text, re.MULTILINE)) <= targets
    assert [
        path for path in re.findall(r"^\s*(\.ci/\w+|tools/\w+)", text, re.MULTILINE) if not (ROOT / path).is_file()
    ] == []


def test_every_form_asks_for_what_the_doctor_says_in_words_that_the_doctor_knows() -> None:
    forms = {path.name: path.read_text() for path in (*FORMS, FORGE / "pull_request_template.md")}
    assert [name for name, text in forms.items() if DOCTOR not in text] == []
    _, _, *words = DOCTOR.split()
    assert command("doctor").make_context("doctor", list(map(str, words))).params["output"] == "json"


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_has_the_fields_that_forges_want(form: Path) -> None:
    content = read(form)
    assert {"name", "description", "body"} <= set(content)
    assert {field["type"] for field in content["body"]} <= KNOWN_INPUTS
    ids = [field["id"] for field in content["body"] if field["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 0


@pytest.mark.parametrize("skill", SKILLS, ids=lambda path: path.parent.name)
def test_a_skill_says_when_to_use_it_and_types_commands_that_there_are(skill: Path) -> None:
    text = skill.read_text()
    head = msgspec.yaml.decode(text.split("---\n")[1])
    assert (head["name"], head["description"].startswith("Use ")) == (skill.parent.name, True)
    typed = [line.strip() for block in CONSOLE.findall(text) for line in block.splitlines()]
    ours = [line.removeprefix("$ ") for line in typed if line.startswith("$ partage ")]
    assert ours
    for line in ours:
        _, name, *_ = line.split()
        flags = {flag for parameter in command(name).params for flag in (*parameter.opts, *parameter.secondary_opts)}
        assert [flag for flag in FLAG.findall(line) if flag not in flags] == [], line


def command(name: str) -> click.Command:
    found = SUBCOMMANDS[name]
    made: click.Command = getattr(importlib.import_module(found.module), found.attribute)
    return made
