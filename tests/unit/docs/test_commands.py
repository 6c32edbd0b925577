"""Every command in README and docs/ is accepted by its program, and every fenced block is of a kind that is checked.

Commands for a cluster are run by real/chart, those of engines by real/docker.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import click
import msgspec
import pytest

from partage_cli.main import cli
from support.fences import PAGES, ROOT, Block, blocks, commands, of_kind, prose, spans, typed

pytestmark = pytest.mark.slow  # it imports every command

KINDS: Final = frozenset(("console", "json", "mermaid", "python", "text", "toml", "yaml"))
"""`text` is for programs' output and drawings."""
ONLY_ON_A_MACHINE: Final[Mapping[str, str]] = {
    "export": "the shell's own; real/installation types it",
    "journalctl": "needs a systemd whose broker has run",
    "kubeadm": "makes a cluster of the machine",
    "tar": "unpacks what `make bundle` made; real/installation types it",
}
"""Programs whose commands are checked neither here nor elsewhere."""
TYPED_BY: Final[Mapping[str, str]] = {
    "docker": "tests/real/docker/test_pages.py",
    "helm": "tests/real/chart/test_pages.py",
    "kubectl": "tests/real/chart/test_pages.py",
    "podman": "tests/real/docker/test_pages.py",
}
MAKEFILE: Final = (ROOT / "Makefile").read_text()
FILE: Final = re.compile(r"[\w-]+\.(?:csv|json|svg|toml|txt|yaml)")
TYPED: Final = tuple(dict.fromkeys(words for each in typed() for words in commands(each.line)))


def taken(words: tuple[str, ...], *, is_whole: bool = True) -> None:
    """Checks a command with the program's own parser. In running text arguments may be missing or be placeholders."""
    program, *args = words
    command: click.Command = cli if program == "partage" else entry_points(group="console_scripts")[program].load()
    while isinstance(command, click.Group):
        context = click.Context(command)
        _, args, _ = command.make_parser(context).parse_args(args)  # the group's own, as `simgpu inject`'s node
        if not is_whole and (not args or args[0].isupper()):
            return
        _, found, args = command.resolve_command(context, args)
        assert found is not None, words
        command = found
    try:
        command.make_context(program, args, parent=click.Context(cli, obj=Path("/"))).close()
    except click.exceptions.Exit:  # `--help`
        return
    except click.BadParameter:  # or a missing argument
        if is_whole:
            raise


def made(words: tuple[str, ...]) -> None:
    """Checks that the Makefile has the target and reads the variables."""
    _, target, *variables = words
    family, _, name = target.partition("-")
    if not re.search(rf"^{re.escape(target)}:", MAKEFILE, re.MULTILINE):
        assert f"\n{family}-%:" in MAKEFILE, target
        assert name == "NAME" or (ROOT / "tests" / family / f"{name}.py").exists(), target
    for variable in variables:
        assert f"$({variable.partition('=')[0]})" in MAKEFILE, variable


def installed(words: tuple[str, ...]) -> None:
    """Checks that the extras given to pip exist."""
    (wanted,) = words[2:]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.fullmatch(r"partage(?:\[(.*)\])?", wanted)
    assert words[1] == "install"
    assert named is not None
    assert set((named[1] or "").split(",")) - {""} <= set(extras)


def there(words: tuple[str, ...]) -> None:
    """Checks that the program exists in the checkout, but not its arguments."""
    assert (ROOT / words[0]).exists(), words


def check_of(program: str) -> Callable[[tuple[str, ...]], None] | None:
    if program.startswith("partage"):
        return taken
    return {"make": made, "pip": installed}.get(program, there if program.startswith("tools/") else None)


def test_no_block_is_of_a_kind_that_nobody_looks_at() -> None:
    assert [(each.page, each.heading, each.kind) for each in blocks() if each.kind not in KINDS] == []


def test_no_block_is_made_by_an_indent_alone() -> None:
    """The language of such a block would be unknown."""
    indented = re.compile(r"\n\n(    [^ \n].*)")
    assert {page.name: found for page in PAGES if (found := indented.findall(prose(page)))} == {}


@pytest.mark.parametrize("words", [each for each in TYPED if check_of(each[0])], ids=" ".join)
def test_what_a_page_has_people_type_is_a_command(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path if words[0].startswith("partage") else ROOT)
    for file in filter(FILE.fullmatch, words):
        (tmp_path / file).touch()
    check = check_of(words[0])
    assert check is not None
    check(words)


def test_all_others_are_typed_elsewhere_or_listed_with_the_reason() -> None:
    others = {words[0] for words in TYPED if not check_of(words[0])}
    assert others == TYPED_BY.keys() | ONLY_ON_A_MACHINE.keys()
    assert [file for file in TYPED_BY.values() if not (ROOT / file).exists()] == []


@pytest.mark.parametrize("code", [code for code, _ in spans("partage(?:-[a-z]+)?")])
def test_a_command_in_running_text_exists_and_has_these_options(code: str) -> None:
    words = shlex.split(re.sub(r"\[[^]]*\]|…", "", code))
    taken(tuple(words), is_whole=False)


@pytest.mark.parametrize("code", [code for code, _ in spans("make")])
def test_a_target_in_running_text_is_one_of_the_makefile(code: str) -> None:
    made(tuple(code.split()))


@pytest.mark.parametrize("block", of_kind("json"), ids=lambda block: f"{block.page}: {block.heading}")
def test_each_json_is_json_but_for_what_is_left_out(block: Block) -> None:
    text = block.text.replace("…", "").strip()
    documents = text.splitlines() if text.startswith(('{"ask"', '{"answer"')) else [text]
    assert all(isinstance(msgspec.json.decode(each), dict) for each in documents)


@pytest.mark.parametrize("block", of_kind("toml"), ids=lambda block: f"{block.page}: {block.heading}")
def test_each_toml_is_toml(block: Block) -> None:
    assert tomllib.loads(block.text)


@pytest.mark.parametrize("block", of_kind("python"), ids=lambda block: f"{block.page}: {block.heading}")
def test_each_python_compiles(block: Block) -> None:
    is_signature = block.text.startswith("def ") and block.text.count("\n") == 1
    compile(f"{block.text.rstrip()}: ..." if is_signature else block.text, block.page, "exec")
