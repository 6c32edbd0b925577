"""The command line of ``partage usage``."""

from __future__ import annotations

import asyncio
import functools
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import click

from partage_base.daemon import logs
from partage_cli.clusters import KUBECONFIG, NAMESPACE, ask_cluster
from partage_cli.main import SUBCOMMANDS
from partage_cli.progress import waiting
from partage_cli.tables import as_json
from partage_cli.usage.held import Window, by_allocations
from partage_cli.usage.report import UsageReport, as_table, fields
from partage_cli.usage.sampled import by_prometheus

_UNITS: Final = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN: Final = re.compile(r"([1-9]\d{0,5})([mhdw])", re.ASCII)
_MOST: Final = timedelta(days=366)


def _span(_context: click.Context, _parameter: click.Parameter, value: str) -> timedelta:
    match = _SPAN.fullmatch(value)
    found = timedelta(seconds=int(match[1]) * _UNITS[match[2]]) if match else timedelta()
    if not timedelta() < found <= _MOST:
        raise click.BadParameter(f"{value!r} is no time; allowed: minutes, hours, days or weeks, as 90m, 24h, 7d, 2w")
    return found


@click.command(
    name="usage",
    short_help=SUBCOMMANDS["usage"].summary,
    epilog="""\b
Examples:
  partage usage
  kubectl partage usage -n team-a --since 7d
  partage usage --since 30d --prometheus http://localhost:9090 -o json
""",
)
@click.option(
    "-n", "--pod-namespace", default="", help="Its pods, each by itself.  [default: a line for each namespace]"
)
@click.option("--since", callback=_span, default="24h", show_default=True, help="How long ago it begins: 90m, 24h, 7d.")
@click.option("--prometheus", metavar="URL", help="Go by what it has of the brokers' figures, and not by allocations.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@KUBECONFIG
@NAMESPACE
@click.pass_obj
def command(  # noqa: PLR0913 (one parameter for each word of the command line)
    root: Path,
    *,
    pod_namespace: str,
    since: timedelta,
    prometheus: str | None,
    output: str,
    kubeconfig: Path | None,
    namespace: str,
) -> None:
    """Show what pods held of cards: milli-hours of share and GiB-hours of memory, as they were promised.

    1000 milli-hours are a whole card for an hour. It goes by the signed allocations of the pods that are there, running
    or ended, from when each was bound; pods that were deleted are not known then. With --prometheus it goes by the
    brokers' figures that were scraped, of all pods, and shows beside it what they GOT of cards' time and what memory
    was CHARGED to them. What a source does not cover is said on stderr.
    """
    logs.configure("partage", level="warning", log_format="text")
    until = datetime.now(UTC)
    found = _asked(root, Window(until - since, until), pod_namespace, prometheus, kubeconfig, namespace)
    if output == "json":
        click.echo(as_json(fields(found)), nl=False)
    elif found.pods:
        click.echo(as_table(found, pods=bool(pod_namespace)), nl=False)
    else:
        click.echo("nobody held anything", err=True)
    for note in found.notes:
        click.echo(note, err=True)


def _asked(  # noqa: PLR0913, PLR0917 (what was typed)
    root: Path, window: Window, of: str, prometheus: str | None, kubeconfig: Path | None, namespace: str
) -> UsageReport:
    if prometheus is not None:
        with waiting("asking Prometheus"):
            return asyncio.run(by_prometheus(prometheus, window, of_namespace=of))
    question = functools.partial(by_allocations, window=window, of_namespace=of, namespace=namespace, root=root)
    return ask_cluster(kubeconfig, question, deadline_s=30.0)
