"""Arguments and options of `partage node install`, `switch-on`, `switch-off` and `upgrade`.

`upgrade` calls `contracts` of other versions.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from partage_cli.installation import switch
from partage_cli.installation.errors import BadTree
from partage_cli.installation.host import Host
from partage_cli.installation.journal import Change, Journal, kept, read
from partage_cli.installation.services import services_of
from partage_cli.installation.status import Status
from partage_cli.installation.tree import own_tree
from partage_cli.installation.versions import contracts as agreed
from partage_cli.installation.versions.upgrade import NewVersion
from partage_cli.installation.versions.upgrade import upgrade as put_in_force
from partage_cli.tables import printable

DRY_RUN: Final = click.option("--dry-run", is_flag=True, help="Only say what would change.")
_NODE_NAME: Final = click.option(
    "--node-name", metavar="NAME", default="", envvar="PARTAGE_NODE_NAME", help="As kubelet registered it."
)
_TREE: Final = click.option(
    "--tree",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The unpacked bundle.  [default: the one that this program is in]",
)


@click.command(
    short_help="Put partage on this node, beside kubelet.",
    epilog="""\b
Examples:
  /opt/partage/0.1.0-g0123456789ab/bin/partage node install --dry-run
  /opt/partage/0.1.0-g0123456789ab/bin/partage node install
""",
)
@_TREE
@_NODE_NAME
@DRY_RUN
@click.pass_obj
def install(root: Path, *, tree: Path | None, node_name: str, dry_run: bool) -> None:
    """Put partage on this node: its programs, broker and crishim as services. Kubelet is not touched.

    Refuses, in words, a node that can't be switched on later. May be repeated at any time, also after it was killed.
    """
    found = _meant(tree)
    if dry_run:
        foresee(switch.to_install(host_of(root, node_name), read(root), found))
        return
    with changing(root, node_name) as (host, journal):
        switch.install(host, journal, found)
        say(f"version {journal.version} is installed, and crishim answers; next: partage node switch-on")


@click.command(
    name="switch-on",
    short_help="Have kubelet start containers through crishim.",
    epilog="""\b
Examples:
  partage node switch-on --dry-run
  partage node switch-on --within 300
""",
)
@click.option(
    "--within",
    "after_s",
    type=click.FloatRange(5, 3600),
    default=switch.AFTER_S,
    show_default=True,
    envvar="PARTAGE_SWITCH_WITHIN",
    help="Seconds after which kubelet gets its runtime back, unless all was well.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, resolve_path=True),
    help="May make pods in kube-system; needed where kubelet takes no static pods.",
)
@_NODE_NAME
@DRY_RUN
@click.pass_obj
def switch_on(root: Path, *, after_s: float, kubeconfig: Path | None, node_name: str, dry_run: bool) -> None:
    """Point kubelet to crishim and restart it. Running containers go on.

    A timer of systemd gives kubelet its container runtime back unless kubelet speaks through crishim, the Node is ready
    and a pod has started within the time; also where this command is killed, and at a reboot.
    """
    if dry_run:
        foresee(switch.to_switch_on(host_of(root, node_name), after_s=after_s))
        return
    with changing(root, node_name) as (host, journal):
        switch.switch_on(host, journal, kubeconfig=kubeconfig, after_s=after_s)
        say("kubelet speaks through crishim, the node is ready and a pod has started")


@click.command(
    name="switch-off",
    short_help="Give kubelet its container runtime back.",
    epilog="""\b
Examples:
  partage node switch-off --dry-run
  partage node switch-off
""",
)
@_NODE_NAME
@DRY_RUN
@click.pass_obj
def switch_off(root: Path, *, node_name: str, dry_run: bool) -> None:
    """Give kubelet the container runtime that it had before, and restart it. Running containers go on.

    A container with an allocation that starts again meanwhile gets no card: drain such pods first.
    """
    if dry_run:
        foresee(switch.to_switch_off(read(root)))
        return
    with changing(root, node_name) as (host, journal):
        switch.switch_off(host, journal)
        say("kubelet has its container runtime, as before partage")


@click.command(
    short_help="Put another version in force.",
    epilog="""\b
Examples:
  /opt/partage/VERSION/bin/partage node upgrade
  partage node upgrade --tree /mnt/partage-node --dry-run
""",
)
@_TREE
@DRY_RUN
@click.pass_obj
def upgrade(root: Path, *, tree: Path | None, dry_run: bool) -> None:
    """Put the version of TREE in force in place of the one that is; containers run on.

    The daemons start again one by one, crishim behind its socket. Where one does not prove itself, the version before
    is in force again when this ends. An older version is an upgrade like others, as far as it reads what is here.
    """
    step = NewVersion(_meant(tree))
    if dry_run:
        foresee(step.plan(host_of(root)).changes)
        return
    with changing(root) as (host, journal):
        put_in_force(host, journal, step)


@click.command(short_help="Print what this version reads and leaves on a node.")
def contracts() -> None:
    """Print the forms that this version reads, and those that it leaves on a node, as JSON."""
    click.echo(agreed.encode(agreed.OURS))


def installation_line(found: Status) -> str:
    """Empty if nothing was ever installed."""
    if found.version is None and found.switch is None:
        return ""
    said = "in force" if found.in_force else f"not in force: {printable(found.why)}"
    return f"version {found.version or 'unknown'}; kubelet speaks to {found.endpoint}; {said}"


def _meant(tree: Path | None) -> Path:
    if found := tree or own_tree():
        return found
    raise BadTree("this program is in no unpacked bundle: name one by --tree")


@contextmanager
def changing(root: Path, node_name: str = "") -> Generator[tuple[Host, Journal]]:
    host = host_of(root, node_name)
    with kept(root) as journal:
        yield host, journal


def host_of(root: Path, node_name: str = "") -> Host:
    return Host(root, services_of(root), say, node_name)


def foresee(changes: Iterable[Change]) -> None:
    lines = [printable(str(change)) for change in changes]
    click.echo("\n".join(lines) if lines else "nothing would change")


def say(line: str) -> None:
    click.echo(f"partage: {printable(line)}", err=True)
