"""The command line of ``partage top``."""

from __future__ import annotations

import functools
import shutil
import sys
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click
import msgspec

from partage_base.daemon.settings import host_name
from partage_base.kube import Access, BadAccess
from partage_cli.clusters import KUBECONFIG, NAMESPACE, NO_NODE, ask_cluster
from partage_cli.machine.setup.decision import SIMULATED, is_simulated
from partage_cli.main import FOUND_WRONG, SUBCOMMANDS, colour
from partage_cli.tables import as_json, printable
from partage_cli.top import cluster
from partage_cli.top.engine_names import EngineNames
from partage_cli.top.live import show
from partage_cli.top.nodes import AT_ONCE, WITHIN_S, ask_nodes
from partage_cli.top.shown import Frame, as_lines, fields
from partage_cli.watch import WATCH, watch
from partage_isolation.wire.client import BrokerClient, ControlError
from partage_isolation.wire.messages import BrokerReport
from partage_plugins.api.places import BROKER_SOCKET


@click.command(
    name="top",
    short_help=SUBCOMMANDS["top"].summary,
    epilog="""\b
Examples:
  sudo partage top
  sudo partage top --once
  sudo partage top --once -o json | jq '.containers[].cards[] | select(.refused > 0)'
  partage top --cluster
  kubectl partage top --node gpu-7 -o json
""",
)
@click.option("--once", is_flag=True, help="Show it once and end; so it is where the output is no terminal.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(0.1, 3600),
    default=1,
    show_default=True,
    metavar="SECONDS",
    help="How often it is drawn again.",
)
@click.option("--cluster", "is_cluster", is_flag=True, help="All nodes, once; so it is where no broker runs here.")
@click.option("--node", "nodes", multiple=True, metavar="NAME", help="This node of the cluster; may be repeated.")
@WATCH
@KUBECONFIG
@NAMESPACE
@click.pass_obj
def command(  # noqa: PLR0913 (one parameter for each word of the command line)
    root: Path,
    *,
    once: bool,
    output: str,
    every_s: float,
    is_cluster: bool,
    nodes: tuple[str, ...],
    is_watched: bool,
    kubeconfig: Path | None,
    namespace: str,
) -> int:
    """Show this node's cards and the containers with limits on them, as the broker counts. Needs root; `q` ends it.

    MEMORY is what is charged to a container: what its programs hold and what is lent to them, and OVERHEAD, which is
    contexts and the like. REFUSED is how often more was asked for than LIMIT allows, since the broker was started. GOT
    and WANTED are parts of the card's time over the last ten seconds: in which the container held the card, and in
    which it held it or waited for it; SHARE is what it is guaranteed, and its ceiling. With `-o json` and without
    `--once` there is one line each time.

    With --cluster or --node, and where this machine has no broker and a cluster can be reached, it shows once what the
    brokers of all nodes tell, with --watch again and again, MEMORY again as charged. Nodes that don't answer are named
    on stderr; the exit code is 3 then.
    """
    if is_cluster or nodes or _is_elsewhere(root, kubeconfig):
        shown = functools.partial(_show_cluster, kubeconfig, namespace, nodes, output)
        return watch(shown, output) if is_watched else shown()
    notice = SIMULATED if is_simulated(root) else ""
    broker = BrokerClient(root)
    told = broker.tell()
    if output == "json":
        if notice:
            click.echo(notice, err=True)
        _print_json(broker, told, once=once, every_s=every_s)
    elif once or not sys.stdout.isatty():
        named = EngineNames().put_into(told)
        click.echo("\n".join(as_lines(named, replace(_frame(), notice=notice))), color=colour())
    else:
        _watch(broker, told, every_s, notice)
    return 0


def _is_elsewhere(root: Path, kubeconfig: Path | None) -> bool:
    """Whether no broker was ever here, and a cluster can be queried."""
    if (root / BROKER_SOCKET).exists():
        return False
    try:
        Access.find(kubeconfig)
    except BadAccess:
        return False
    return True


def _show_cluster(kubeconfig: Path | None, namespace: str, nodes: tuple[str, ...], output: str) -> int:
    question = functools.partial(ask_nodes, namespace=namespace, only=nodes)
    found = ask_cluster(kubeconfig, question, deadline_s=WITHIN_S, connections=AT_ONCE)
    if output == "json":
        click.echo(as_json(cluster.fields(found)), nl=False)
    elif found.told:
        click.echo(cluster.as_table(found), nl=False, color=colour())
    for node, why in found.silent.items():
        click.echo(f"{printable(node)} does not answer: {printable(why)}", err=True)
    if not found.told and not found.silent:
        click.echo(NO_NODE, err=True)
    return FOUND_WRONG if found.silent else 0


def _print_json(broker: BrokerClient, told: BrokerReport, *, once: bool, every_s: float) -> None:
    if once:
        click.echo(as_json(fields(told, _frame())), nl=False)
        return
    while True:
        click.echo(msgspec.json.encode(fields(told, _frame())))
        time.sleep(every_s)
        told = broker.tell()


def _watch(broker: BrokerClient, told: BrokerReport, every_s: float, notice: str) -> None:
    """Redraw until the user quits; while a broker is away, as for an upgrade, its last report stays on the screen."""
    last, engines = told, EngineNames()

    def draw() -> list[str]:
        nonlocal last
        try:
            last, trouble = broker.tell(), ""
        except ControlError as error:
            trouble = str(error)
        size = shutil.get_terminal_size()
        frame = replace(_frame(size.columns, size.lines), notice=notice)
        lines = as_lines(engines.put_into(last), frame, trouble=trouble)
        return lines if colour() is None else list(map(click.unstyle, lines))

    try:
        show(draw, every_s)
    except KeyboardInterrupt:
        return


def _frame(width: int = 0, height: int = 0) -> Frame:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    at = datetime.now().astimezone()
    return Frame(node=host_name(), at=at, width=width, height=height, blocks=encoding.startswith("utf"))
