"""The command line of ``partage limits``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from partage_cli.limits.choice import Target, chosen, require_one_container
from partage_cli.machine.setup.decision import SIMULATED, is_simulated
from partage_cli.main import SUBCOMMANDS, colour
from partage_cli.tables import amount, as_json, pod_name, short_id, table
from partage_cli.top.engine_names import EngineNames
from partage_cli.top.grantees import Grantee
from partage_cli.top.times import share_cell
from partage_isolation.wire.client import BrokerClient
from partage_isolation.wire.messages import SetLimits
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.codecs.quantity import parse_bytes
from partage_plugins.errors import DecodeError

_MILLI: Final = click.IntRange(0, WHOLE_MILLI)


def _bytes(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    try:
        return None if value is None else parse_bytes(value, largest=1 << 62)
    except DecodeError as error:
        raise click.BadParameter(f"{error.value}; allowed: {error.allowed}") from None


@click.command(
    name="limits",
    short_help=SUBCOMMANDS["limits"].summary,
    epilog="""\b
Examples:
  sudo partage limits train-0
  sudo partage limits team-a/train-0 --memory 4Gi
  sudo partage limits train-0 --container main --card 0 --memory 512Mi
  sudo partage limits train-0 --share 300 --limit 500
  sudo partage limits train-0 --reset
  sudo partage limits 54593e043f0d --memory 4Gi
""",
)
@click.argument("pod")
@click.option("--container", metavar="NAME", help="Of this container; needed where several have limits.")
@click.option("--card", metavar="CARD", help="On this card: its id, how that begins, or its index.  [default: on each]")
@click.option("--memory", "memory_bytes", metavar="QUANTITY", callback=_bytes, help="Lower it to this, as 4Gi.")
@click.option("--share", "share_milli", metavar="MILLI", type=_MILLI, help="Guarantee it so much of its time, as 300.")
@click.option("--limit", "limit_milli", metavar="MILLI", type=_MILLI, help="Let it have so much of its time at most.")
@click.option("--reset", is_flag=True, help="What the pod was granted holds again.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_obj
def command(  # noqa: PLR0913 (one parameter for each word of the command line)
    root: Path,
    *,
    pod: str,
    container: str | None,
    card: str | None,
    memory_bytes: int | None,
    share_milli: int | None,
    limit_milli: int | None,
    reset: bool,
    output: str,
) -> None:
    """Show what the containers of POD may have of this node's cards, and lower it while they run. Needs root.

    POD is a name, NAMESPACE/NAME or a uid of a pod or a claim, or a name or ID of a container that `partage ps` shows.

    A lower limit of memory takes nothing away: nothing more is given until the container is below it. What is lowered
    of its time, in thousandths of each card's, counts at once. It all holds until the container ends; what the pod was
    granted is never exceeded. Containers that use one budget are one line, and change together.
    """
    said = {"memory_bytes": memory_bytes, "share_milli": share_milli, "limit_milli": limit_milli}
    wanted = {name: value for name, value in said.items() if reset or value is not None}
    if reset and any(value is not None for value in said.values()):
        raise click.UsageError("--reset excludes --memory, --share and --limit")
    if is_simulated(root):
        click.echo(SIMULATED, err=True)
    broker, engines = BrokerClient(root), EngineNames()
    targets = chosen(engines.put_into(broker.tell()), pod, container=container, card=card)
    if wanted:
        require_one_container(targets, pod)
        for target in targets:
            broker.set_limits(SetLimits(key=target.grantee.key, card=target.held.card, **wanted))
        targets = chosen(engines.put_into(broker.tell()), pod, container=container, card=card)
    _print(targets, output)


def _print(targets: Sequence[Target], output: str) -> None:
    if output == "json":
        rows = [{**_whose(each.grantee), **msgspec.to_builtins(each.held)} for each in targets]
        click.echo(as_json({"limits": rows}), nl=False)
        return
    header = ("POD", "CONTAINER", "CARD", "MEMORY", "LIMIT", "GRANTED", "REFUSED", "SHARE")
    click.echo(table(header, map(_row, targets)), nl=False, color=colour())


def _whose(grantee: Grantee) -> dict[str, object]:
    if grantee.budget is None:
        return {"pod": grantee.pod, "container": grantee.names[0]}
    return {"pod": grantee.pod, "budget": grantee.budget, "containers": grantee.names}


def _row(target: Target) -> tuple[str, ...]:
    grantee, held = target
    limit = amount(held.limit_bytes)
    return (
        pod_name(grantee.pod.namespace, grantee.pod.name),
        grantee.name,
        short_id(held.card),
        amount(held.charged_bytes),
        click.style(limit, fg="yellow") if held.limit_bytes < held.granted_bytes else limit,
        amount(held.granted_bytes),
        str(held.refused),
        share_cell(held),
    )
