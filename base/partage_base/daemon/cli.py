"""Builds a daemon's command line from its settings type. A daemon's own ``cli.py`` is one call.

    main = daemon_command("crishim", CrishimSettings, start=start, about="Stands between kubelet and containerd.")

Flags are taken as text and validated with all other sources, so that every mistake is reported at once, in one form.
Only an unknown flag is click's usage error (2).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, NoReturn, TypeVar

import click

from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.life import LoopFactory, SettingsOutcome, Start, live
from partage_base.daemon.logs import keep_standard_descriptors
from partage_base.daemon.resolution import Resolved
from partage_base.daemon.settings import COMMON_TABLE, CommonSettings, Field, fields_of
from partage_base.daemon.sources import DEFAULT_PATH, Sources, as_toml, shown_default
from partage_base.version import VERSION
from partage_plugins.errors import PartageError

S = TypeVar("S", bound=CommonSettings)
Check = Callable[[S], Sequence[str]]


@dataclass(frozen=True)
class Instead(Generic[S]):
    """A one-time action of a daemon's command, chosen by a flag or a word, that replaces running the daemon."""

    flags: Mapping[str, str]
    """Flag names without dashes, each with its help text."""
    words: tuple[str, ...]
    do: Callable[[S, frozenset[str]], int]
    """Called with all flags and words that were given; returns the exit code."""

    @property
    def parameters(self) -> list[click.Parameter]:
        flags = [click.Option([f"--{flag}"], is_flag=True, help=text) for flag, text in self.flags.items()]
        return [*flags, click.Argument(["word"], type=click.Choice(self.words), required=False)]

    def taken_from(self, given: dict[str, Any]) -> frozenset[str]:
        """Removes these flags and the word from `given` and returns those that were set."""
        flags = {flag for flag in self.flags if given.pop(flag.replace("-", "_"))}
        return frozenset({*flags, *filter(None, [given.pop("word")])})


CHECK_SETTINGS: Final[Mapping[str, str]] = {
    "check-settings": "Look at settings and plugins alone, without keys and API server, then exit: 0 or 78."
}
"""The flag with which the chart lets a daemon check its settings before anything is installed."""


def daemon_command(  # noqa: PLR0913 - said once by each daemon, and by name
    name: str,
    settings_type: type[S],
    *,
    start: Start[S],
    about: str,
    check: Check[S] | None = None,
    loop_factory: LoopFactory | None = None,
    takes_over: bool = False,
    lives_always: bool = False,
    instead: Instead[S] | None = None,
) -> click.Command:
    """The command ``partage-NAME``; `about` is a sentence for ``--help``, `loop_factory` makes another event loop.

    `takes_over`: it may start while its predecessor is still running.

    `lives_always`: mistakes in the settings are passed to the service instead of ending it, see `Sources`. They still
    end the command with ``--check``, ``--print-config`` or a one-time action; an unknown flag does too on a terminal.

    `instead`: what the command can do instead of running as a daemon.

    `check` returns the mistakes in everything the settings refer to, such as keys; with it the command has ``--check``.
    """
    program = f"partage-{name}"

    def run(config: Path | None, **given: Any) -> NoReturn:  # noqa: ANN401  (click's call)
        print_config, checks = given.pop("print_config"), given.pop("check", False)
        modes = instead.taken_from(given) if instead else frozenset[str]()
        keep_standard_descriptors()
        usage = str(click.get_current_context().meta.get(_USAGE, ""))
        sources = Sources(settings_type, name, config, _texts(given), usage)
        mistakes: tuple[str, ...] = ()
        try:
            resolved = sources.read()
            if check is not None and checks:
                _require(check(resolved.settings))
        except BadConfiguration as error:
            with contextlib.suppress(OSError):  # stderr may be closed; a daemon that must live goes on
                for line in error.mistakes:
                    click.echo(f"{program}: {line}", err=True)
            if not lives_always or checks or print_config or modes:
                sys.exit(error.exit_code)
            resolved, mistakes = Resolved(sources.last(), {}), error.mistakes
        if checks:
            click.echo(f"{program}: nothing is wrong with its configuration", err=True)
            sys.exit()
        if print_config:
            click.echo(as_toml(resolved, name).encode(), nl=False)  # TOML is UTF-8 in every locale
            sys.exit()
        if instead is not None and modes:
            sys.exit(_done_instead(program, instead, resolved.settings, modes))
        reading = SettingsOutcome(sources, mistakes) if lives_always else None
        settings = resolved.settings
        sys.exit(live(name, settings, start=start, loop_factory=loop_factory, takes_over=takes_over, reading=reading))

    options = [*_options(name, settings_type), *([_CHECK] if check else []), *(instead.parameters if instead else [])]
    kind = _LivesAlways if lives_always else click.Command
    command = kind(program, callback=run, help=about, epilog=_EPILOG, params=options)
    return click.version_option(VERSION, prog_name=program)(command)


_CHECK = click.Option(["--check"], is_flag=True, help="Look at everything that a start would need, then exit: 0 or 78.")
_EPILOG = (
    "A flag wins over a variable, a variable over the file, the file over the default. "
    "Exit codes: 0 done, 1 failed, 2 usage, 78 bad configuration."
)


class _LivesAlways(click.Command):
    """A command that treats an unreadable command line as one more mistake, unless stderr is a terminal."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses as click does; if click rejects the command line, takes nothing from it."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if sys.stderr.isatty() or _ASKS & set(given):
                raise
            ctx.meta[_USAGE] = f"the command line can't be read: {error.format_message()}"
            ctx.params.clear()
            return super().parse_args(ctx, [])


_USAGE: Final = f"{__name__}.usage"
_ASKS: Final = frozenset({"--check", "--print-config", "--help", "--version"})


def _done_instead(program: str, instead: Instead[S], settings: S, modes: frozenset[str]) -> int:
    try:
        return instead.do(settings, modes)
    except BadConfiguration as error:
        for line in error.mistakes:
            click.echo(f"{program}: {line}", err=True)
        return error.exit_code
    except (PartageError, OSError) as error:
        click.echo(f"{program}: {error}", err=True)
        return 1


def _require(mistakes: Sequence[str]) -> None:
    if mistakes:
        raise BadConfiguration(*mistakes)


def _texts(given: Mapping[str, Any]) -> dict[str, str]:
    """The flags that were given, in the text form of an environment variable."""
    return {name: _text(value) for name, value in given.items() if value not in (None, ())}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _options(daemon: str, settings_type: type[CommonSettings]) -> list[click.Parameter]:
    defaults = settings_type()
    settings = [_option(daemon, field, getattr(defaults, field.name)) for field in fields_of(settings_type).values()]
    return [
        *settings,
        click.Option(
            ["--config"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help=f"File with tables [{COMMON_TABLE}] and [{daemon}]; default: {DEFAULT_PATH} below the root.",
        ),
        click.Option(["--print-config"], is_flag=True, help="Print each setting and where it comes from, then exit."),
    ]


def _option(daemon: str, field: Field, default: object) -> click.Option:
    variables = " or ".join(reversed(field.variables(daemon)))
    flags = f"{field.flag}/--no-{field.flag[2:]}" if field.is_switch else field.flag
    return click.Option(
        [flags, field.name],
        default=None,
        multiple=field.is_list,
        metavar=None if field.is_switch else "|".join(field.choices) or field.name.rpartition("_")[2].upper(),
        help=f"{field.setting.sentence}  [{variables}; default: {shown_default(field, default)}]",
    )
