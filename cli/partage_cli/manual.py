"""``partage man``: a manual page for each command, from the same text as its ``--help``."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import click

from partage_base.files import write_whole
from partage_base.version import VERSION
from partage_cli.main import SUBCOMMANDS, cli
from partage_plugins.errors import Refused

_STATUS: Final = "0 done, 1 failed, 2 wrong usage, 3 checked and found wrong, 130 interrupted."
_AS_IT_IS: Final = "\b"
"""click's mark for a paragraph whose line breaks are kept."""


@click.command(
    name="man",
    short_help=SUBCOMMANDS["man"].summary,
    epilog="""\b
Examples:
  partage man top | man -l -
  partage man --into /usr/local/share/man/man1
""",
)
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the pages of all commands there, and print none.",
)
def command(words: tuple[str, ...], *, into: Path | None) -> None:
    """Print the manual page of a command, in the language of man(1); without one that of partage itself."""
    root = whole()
    if into is None:
        click.echo(page(_found(root, words)), nl=False)
        return
    if words:
        raise click.UsageError("--into writes the pages of all commands: name none")
    into.mkdir(parents=True, exist_ok=True)
    for context in every(root):
        write_whole(into / f"{_page_name(context)}.1", page(context).encode(), mode=0o644)


def whole() -> click.Context:
    """The context of `partage` itself, the root of all commands."""
    return click.Context(cli, info_name="partage", **cli.context_settings)


def every(context: click.Context) -> Iterator[click.Context]:
    """The context of a command and of all its subcommands; reports on stderr those whose libraries are missing."""
    yield context
    for name in _names(context):
        try:
            below = _below(context, name)
        except click.ClickException as error:
            click.echo(f"without a page of {name}: {error.format_message()}", err=True)
        else:
            yield from every(below)


def page(context: click.Context) -> str:
    """The manual page of a command in the macros of man(7)."""
    what = context.command
    usage = " ".join((context.command_path, *what.collect_usage_pieces(context)))
    lines = [
        f'.TH "{_page_name(context).upper()}" "1" "" "partage {VERSION}" "partage"',
        *_section("NAME", [f"{_page_name(context)} \\- {_escaped(what.get_short_help_str(limit=200))}"]),
        *_section("SYNOPSIS", [_escaped(usage)]),
        *_section("DESCRIPTION", _paragraphs(what.help or "")),
        *_section("OPTIONS", _entries(_records(context))),
        *_section("COMMANDS", _entries((name, _summary(context, name)) for name in _names(context))),
        *_section("EXIT STATUS", [_escaped(_STATUS)]),
        *_section("NOTES", _paragraphs(what.epilog or "")),
    ]
    return "\n".join(lines) + "\n"


def _found(context: click.Context, words: Iterable[str]) -> click.Context:
    for word in words:
        if word not in _names(context):
            raise Refused(
                f"`{context.command_path}` has no command {word!r}; `{context.command_path} --help` lists them"
            )
        context = _below(context, word)
    return context


def _names(context: click.Context) -> list[str]:
    return context.command.list_commands(context) if isinstance(context.command, click.Group) else []


def _below(context: click.Context, name: str) -> click.Context:
    """A subcommand's context. Raises `ClickException` if the subcommand needs a missing extra."""
    found = context.command.get_command(context, name) if isinstance(context.command, click.Group) else None
    if found is None:
        raise Refused(f"`{context.command_path}` has no command {name!r}")
    return click.Context(found, info_name=name, parent=context)


def _summary(context: click.Context, name: str) -> str:
    """The summary of a subcommand; those of `partage` itself come from the table, without an import."""
    if context.command is cli:
        return SUBCOMMANDS[name].summary
    return _below(context, name).command.get_short_help_str(limit=200)


def _records(context: click.Context) -> Iterator[tuple[str, str]]:
    records = (parameter.get_help_record(context) for parameter in context.command.get_params(context))
    return (record for record in records if record is not None)


def _page_name(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _section(title: str, lines: Iterable[str]) -> list[str]:
    body = [*lines]
    return [f".SH {title}", *body] if body else []


def _entries(records: Iterable[tuple[str, str]]) -> Iterator[str]:
    for names, words in records:
        yield from (".TP", f"\\fB{_escaped(names)}\\fR", _escaped(words))


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs by click's rules: separated by blank lines, and marked ones keep their line breaks."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith(_AS_IT_IS):
            lines = paragraph.removeprefix(_AS_IT_IS).strip("\n").splitlines()
            yield from (".PP", ".nf", *map(_escaped, lines), ".fi")
        elif paragraph.strip():
            yield from (".PP", _escaped(" ".join(paragraph.split())))


def _escaped(text: str) -> str:
    """Escape text so that roff reads no request or escape in it."""
    line = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line
